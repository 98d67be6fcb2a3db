// Of ucx::directory_listing, for one version: client::list_directory() returned the entries alone.
// Included within the struct.

using iterator = std::vector<entry>::const_iterator;

[[deprecated("entries")]] iterator begin() const noexcept { return entries.begin(); }
[[deprecated("entries")]] iterator end() const noexcept { return entries.end(); }
[[deprecated("entries")]] std::size_t size() const noexcept { return entries.size(); }
[[deprecated("entries")]] bool empty() const noexcept { return entries.empty(); }
[[deprecated("entries")]] const entry& operator[](std::size_t at) const { return entries[at]; }
[[deprecated("entries")]] operator std::vector<entry>() const& { return entries; }
[[deprecated("entries")]] operator std::vector<entry>() && { return std::move(entries); }
