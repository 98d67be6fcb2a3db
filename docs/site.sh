#!/usr/bin/env bash
# Makes the site, from the tutorial to the API's reference: MkDocs with the theme Material (PyPI), and Doxygen. That of
# Python comes from docstrings (python_reference.py).
# A dead link, a warning of Doxygen's, a larger interface or a cut sentence (check_public.py) fails it.
#   docs/site.sh FOLDER DOXYFILE     the site is FOLDER/site/index.html; a browser searches it only where a server shows it
set -euo pipefail
folder=$(realpath "$1") doxyfile=$(realpath "$2")
cd "$(dirname "$0")/.."
material=9.6.23

venv=$folder/mkdocs-$material
if [ ! -x "$venv/bin/mkdocs" ]; then
  python3 -m venv "$venv"
  "$venv/bin/pip" install --quiet --only-binary :all: "mkdocs-material==$material"
fi

rm -rf "$folder/pages" "$folder/html" "$folder/xml"
mkdir -p "$folder/pages/docs"
doxygen "$doxyfile"
docs/check_public.py "$folder/xml"
cp docs/mkdocs.yml "$folder/"
cp README.md CHANGELOG.md LICENSE "$folder/pages/"
cp -r examples include "$folder/pages/"
cp --parents python/examples/*.py "$folder/pages/"
(cd docs && find . \( -name "*.md" ! -name api.md -o -name '*.svg' \) -exec cp --parents -t "$folder/pages/docs" {} +)
docs/python_reference.py "$folder/pages/docs/reference/python-api.md"
mv "$folder/html" "$folder/pages/api"
# Words behind a fence's language and hidden commands are for a test (tests/documents/run.py), not for the page.
find "$folder/pages" -name '*.md' -exec sed -i -E '/^<!-- (code|sh)\b/,/^-->$/d; s/^( *```[a-z]+) .*/\1/' {} +
# Not --quiet: what it does not say it does not count.
NO_MKDOCS_2_WARNING=1 "$venv/bin/mkdocs" build --strict --clean -f "$folder/mkdocs.yml" >"$folder/mkdocs.log" 2>&1 || {
  grep -E 'WARNING|ERROR|Aborted' "$folder/mkdocs.log" >&2 || tail -n 20 "$folder/mkdocs.log" >&2
  exit 1
}
# MkDocs does not look at the API's pages.
is_there() { [ -f "$1" ] && { [ -z "$2" ] || grep -q "id=\"$2\"" "$1"; }; } # PAGE HEADING
cd "$folder/site/api"
grep -rhoE --include='*.html' '"\.\./docs/[^"]*"' . | sort -u | tr -d '"' | while IFS='#' read -r page heading; do
  is_there "$page" "$heading" || { echo "The API's pages have a dead link: $page#$heading" >&2; exit 1; }
done
echo "The site: $folder/site/index.html; with search: python3 -m http.server --bind 127.0.0.1 --directory $folder/site"
