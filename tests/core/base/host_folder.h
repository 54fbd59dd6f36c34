// A made-up /proc and /sys below a temporary folder. The texts are those of a Linux 6.1 with other
// numbers.

#pragma once

#include <QTemporaryDir>

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

namespace mr::test {

inline constexpr std::string_view kStat = "cpu  1000 50 400 8000 300 20 30 200 70 0\n"
                                          "cpu0 500 25 200 4000 150 10 15 100 35 0\n"
                                          "intr 8885 0 9\n";
// 600 ticks later, 450 of them busy.
inline constexpr std::string_view kStatLater = "cpu  1400 50 450 8100 350 20 30 200 70 0\n";

inline constexpr std::string_view kMemInfo = "MemTotal:       16384000 kB\n"
                                             "MemFree:         1024000 kB\n"
                                             "MemAvailable:    8192000 kB\n"
                                             "Buffers:          102400 kB\n"
                                             "SwapCached:            0 kB\n";

// Field 14 is `user`, 15 is 40, 24 is 2500 pages; the name has all that confuses a reader.
inline std::string processStat(int user)
{
    return "4242 (a) R (b c) S 1 4242 4242 34816 -1 4194304 5000 0 3 0 " + std::to_string(user) +
           " 40 0 0 20 0 9 0 123456 1048576000 2500 18446744073709551615 1 1 0 0 0 0 0 0 17 1 0 "
           "0\n";
}

class HostFolder
{
public:
    std::filesystem::path root() const { return m_folder.path().toStdString(); }

    void write(const std::string& path, std::string_view text) const
    {
        const std::filesystem::path file = root() / path;
        std::filesystem::create_directories(file.parent_path());
        std::ofstream(file) << text;
    }

    void writeBasics() const
    {
        write("proc/stat", kStat);
        write("proc/meminfo", kMemInfo);
        write("proc/self/stat", processStat(100));
    }

private:
    QTemporaryDir m_folder;
};

} // namespace mr::test
