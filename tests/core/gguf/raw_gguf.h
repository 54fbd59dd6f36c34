// GGUF files made by hand, sound or broken in one way, without the writer that is tested.

#pragma once

#include "core/gguf/gguf_file.h"

#include <QTemporaryDir>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

namespace mr::test {

template <typename T>
std::string raw(T value)
{
    return {reinterpret_cast<const char*>(&value), sizeof value};
}

inline std::string rawText(std::string_view text)
{
    return raw<std::uint64_t>(text.size()) + std::string(text);
}

inline std::string rawKey(std::string_view key, std::uint32_t type, const std::string& value)
{
    return rawText(key) + raw(type) + value;
}

inline std::string rawTensor(std::string_view name, const std::vector<std::int64_t>& ne,
    std::uint32_t type, std::uint64_t offset)
{
    std::string bytes = rawText(name) + raw(static_cast<std::uint32_t>(ne.size()));
    for (const std::int64_t n : ne)
        bytes += raw(n);
    return bytes + raw(type) + raw(offset);
}

struct RawGguf {
    std::string magic = "GGUF";
    std::uint32_t version = 3;
    std::vector<std::string> keys;
    std::vector<std::string> tensors;
    std::size_t alignment = 32;
    std::string data;

    std::string bytes() const
    {
        std::string all = magic + raw(version) + raw<std::uint64_t>(tensors.size()) +
                          raw<std::uint64_t>(keys.size());
        for (const std::string& key : keys)
            all += key;
        for (const std::string& tensor : tensors)
            all += tensor;
        all.resize((all.size() + alignment - 1) / alignment * alignment, '\0');
        return all + data;
    }
};

// A file in a folder of its own, as long as this lives.
class GgufOnDisk
{
public:
    explicit GgufOnDisk(const std::string& bytes) { replace(bytes); }

    void replace(const std::string& bytes) const
    {
        std::filesystem::remove(path());
        std::ofstream out(path(), std::ios::binary);
        out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    }

    std::filesystem::path path() const { return folder() / "m.gguf"; }
    std::filesystem::path folder() const { return m_folder.path().toStdString(); }
    Result<GgufFile> open() const { return GgufFile::open(path()); }

private:
    QTemporaryDir m_folder;
};

inline std::string fileBytes(const std::filesystem::path& file)
{
    std::ifstream in(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
}

} // namespace mr::test
