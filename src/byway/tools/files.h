// SPDX-License-Identifier: BSD-3-Clause
// Files that commands read and write. What goes wrong is an Error{InvalidArgument} naming the path.
#pragma once

#include <string>
#include <string_view>

namespace byway::tools {

// "-" is the standard input.
std::string readFile(const std::string& path);

// Under another name first, then renamed: a reader never sees half of it. "-" is the standard
// output.
void writeFileAtomically(const std::string& path, std::string_view content);

// Fails early where writeFileAtomically would fail late.
void requireWritable(const std::string& path);

// A new folder, removed with what it holds.
class TemporaryFolder {
 public:
  // In `parent`; "": TMPDIR or /tmp.
  explicit TemporaryFolder(const std::string& prefix, std::string parent = "");
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace byway::tools
