#include "fuzz/fuzz_rig.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <system_error>

namespace mr::fuzz {
namespace fs = std::filesystem;

namespace {

constexpr std::string_view kCut = "\n%%%%\n";
constexpr std::size_t kMostMessageBytes = 8192; // several names of files, and the error

} // namespace

const std::vector<std::string> kTexts = {"Hello  world's\n\n 12345\t<s>[INST]</s> \r\n",
    "\xE6\x97\xA5\xE6\x9C\xAC\xE8\xAA\x9E e\xCC\x81 \xEF\xAC\x81 \xF0\x9F\x91\xA9\xE2\x80\x8D"
    "\xF0\x9F\x9A\x80",
    std::string("a\0b \xFF\xFE\xC3 \xED\xA0\x80", 10), std::string(300, 'a'),
    std::string(200, ' ') + "x", ""};

FuzzFolder::FuzzFolder()
{
    std::error_code error;
    const fs::path memory = "/dev/shm";
    const fs::path base = ::access(memory.c_str(), W_OK) == 0 ? memory : fs::temp_directory_path();
    m_path = base / ("millrace-fuzz-" + std::to_string(::getpid()));
    static int folders = 0;
    m_path += "-" + std::to_string(folders++);
    fs::remove_all(m_path, error);
    fs::create_directories(m_path, error);
    require(!error, "no folder to work in");
}

FuzzFolder::~FuzzFolder()
{
    std::error_code error;
    fs::remove_all(m_path, error);
}

fs::path FuzzFolder::write(const std::string& name, std::string_view content) const
{
    const fs::path file = m_path / name;
    std::error_code error;
    fs::create_directories(file.parent_path(), error);
    std::ofstream out(file, std::ios::binary);
    out.write(content.data(), static_cast<std::streamsize>(content.size()));
    require(out.good(), "cannot write an input");
    return file;
}

void FuzzFolder::remove(const std::string& name) const
{
    std::error_code error;
    fs::remove_all(m_path / name, error);
}

std::vector<std::string_view> cutInput(std::string_view bytes, std::size_t count)
{
    std::vector<std::string_view> parts(count);
    for (std::size_t i = 0; i < count; ++i) {
        const std::size_t end = i + 1 < count ? bytes.find(kCut) : bytes.size();
        parts[i] = bytes.substr(0, end);
        if (end == std::string_view::npos || end == bytes.size())
            break;
        bytes.remove_prefix(end + kCut.size());
    }
    return parts;
}

void require(bool holds, const char* what)
{
    if (holds)
        return;
    (void)std::fprintf(stderr, "the target found: %s\n", what);
    std::abort();
}

bool check(const Status& status)
{
    if (status.ok())
        return true;
    require(!status.message().empty(), "a refusal without words");
    require(status.message().size() < kMostMessageBytes, "a message longer than a screen");
    return false;
}

} // namespace mr::fuzz
