// Tools of the targets: a folder in memory, inputs of several files, and checks of answers.
//
// Threads  One thread.
// Errors   check() and require() abort: that is how a target reports.

#pragma once

#include <millrace/status.h>

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace mr::fuzz {

// A folder of this process, in memory where the system has such a place. It is removed at exit.
class FuzzFolder
{
public:
    FuzzFolder();
    FuzzFolder(const FuzzFolder&) = delete;
    FuzzFolder& operator=(const FuzzFolder&) = delete;
    ~FuzzFolder();

    const std::filesystem::path& path() const noexcept { return m_path; }
    // Creates or replaces a file, and the folder it is in.
    std::filesystem::path write(const std::string& name, std::string_view content) const;
    void remove(const std::string& name) const;

private:
    std::filesystem::path m_path;
};

// At most `count` parts; those that are missing are empty.
std::vector<std::string_view> cutInput(std::string_view bytes, std::size_t count);

void require(bool holds, const char* what);

// A refusal says something, in one screen at most. Returns ok().
bool check(const Status& status);

template <typename T>
bool check(const Result<T>& result)
{
    return result.ok() || check(result.status());
}

// Text that every tokenizer meets.
extern const std::vector<std::string> kTexts;

} // namespace mr::fuzz
