// Damage to files of a checkpoint: a turned bit, a missing byte, an emptied folder.

#pragma once

#include <QtGlobal>

#include <filesystem>
#include <fstream>
#include <string>

namespace mr::test {

inline void flipBit(const std::filesystem::path& path, std::uintmax_t at, int bit = 0)
{
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(static_cast<std::streamoff>(at));
    const int was = file.get();
    file.seekp(static_cast<std::streamoff>(at));
    file.put(static_cast<char>(was ^ (1 << bit)));
    if (!file)
        qFatal("cannot damage %s", path.c_str());
}

inline void flipMiddleBit(const std::filesystem::path& path)
{
    flipBit(path, std::filesystem::file_size(path) / 2);
}

inline void cutByOneByte(const std::filesystem::path& path)
{
    std::filesystem::resize_file(path, std::filesystem::file_size(path) - 1);
}

inline void emptyFolder(const std::filesystem::path& folder)
{
    std::filesystem::remove_all(folder);
    std::filesystem::create_directory(folder);
}

} // namespace mr::test
