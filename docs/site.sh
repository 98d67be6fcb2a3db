#!/usr/bin/env bash
# Makes the site, from the tutorial to the API's reference: MkDocs with the theme Material (PyPI), and Doxygen.
# A dead link, or a warning of Doxygen's, fails it.
#   docs/site.sh FOLDER DOXYFILE     the site is FOLDER/site/index.html, which a browser opens without a server
set -euo pipefail
folder=$1 doxyfile=$2
cd "$(dirname "$0")/.."
material=9.6.23

venv=$folder/mkdocs-$material
if [ ! -x "$venv/bin/mkdocs" ]; then
  python3 -m venv "$venv"
  "$venv/bin/pip" install --quiet --only-binary :all: "mkdocs-material==$material"
fi

rm -rf "$folder/pages" "$folder/html"
mkdir -p "$folder/pages/docs"
doxygen "$doxyfile"
cp docs/mkdocs.yml "$folder/"
cp README.md CHANGELOG.md LICENSE "$folder/pages/"
cp -r examples include "$folder/pages/"
(cd docs && find . \( -name '*.md' -o -name '*.svg' \) -exec cp --parents -t "$folder/pages/docs" {} +)
mv "$folder/html" "$folder/pages/api"
NO_MKDOCS_2_WARNING=1 "$venv/bin/mkdocs" build --quiet --strict --clean -f "$folder/mkdocs.yml"
echo "The site: $folder/site/index.html"
