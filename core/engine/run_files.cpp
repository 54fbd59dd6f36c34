#include "core/engine/run_files.h"

#include "core/telemetry/run_folder.h"

#include <millrace/run_reader.h>
#include <millrace/session.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <random>

namespace mr {
namespace fs = std::filesystem;
namespace {

constexpr const char* kRunFile = "run.json";

std::string slug(const std::string& name)
{
    std::string out;
    for (const char c : name) {
        const bool plain =
            (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        if (plain)
            out += c;
        else if (!out.empty() && out.back() != '-')
            out += '-';
    }
    return out.empty() ? "run" : out;
}

std::string timeStamp()
{
    const std::time_t now = std::time(nullptr);
    std::tm local{};
    localtime_r(&now, &local);
    std::array<char, 32> text{};
    (void)std::strftime(text.data(), text.size(), "%Y%m%d-%H%M%S", &local);
    return text.data();
}

} // namespace

std::string newUuid()
{
    std::random_device random;
    std::string uuid;
    for (int i = 0; i < 4; ++i) {
        std::array<char, 9> text{};
        (void)std::snprintf(text.data(), text.size(), "%08x", random());
        uuid += text.data();
    }
    return uuid;
}

std::string datasetPath(const RunSpec& spec)
{
    return spec.data.empty() ? std::string() : spec.data.front().path;
}

std::int64_t wallClockMs()
{
    return std::chrono::duration_cast<std::chrono::milliseconds>(
        std::chrono::system_clock::now().time_since_epoch())
        .count();
}

Result<fs::path> makeRunDir(const RunSpec& spec)
{
    fs::path dir = spec.outDir;
    if (dir.empty())
        dir = fs::path(defaultRunsFolder()) / (timeStamp() + "-" + slug(spec.name));
    std::error_code error;
    dir = fs::absolute(dir, error);
    if (fs::exists(dir / kRunFile, error))
        return Status::error(ErrorKind::InvalidArgument,
            dir.string() + ": already holds a run; continue it with `millrace resume " +
                dir.string() + "`, or choose another folder");
    fs::create_directories(dir, error);
    if (error)
        return Status::error(
            ErrorKind::Io, "create run folder " + dir.string() + ": " + error.message());
    return dir;
}

Result<RunSpec> readRunSpec(const std::string& runDir)
{
    std::error_code error;
    if (!fs::exists(fs::path(runDir) / kRunFile, error))
        return Status::error(ErrorKind::InvalidArgument,
            runDir + ": is not a run folder (it has no run.json); give the folder that "
                     "`train --out` wrote");
    auto record = readRunRecord(runDir);
    if (!record.ok())
        return record.status();
    auto spec = runSpecFromJson(record.value().configJson);
    if (!spec.ok())
        return Status::error(ErrorKind::DataCorrupt,
            (fs::path(runDir) / kRunFile).string() + ": " + spec.status().message());
    return spec;
}

} // namespace mr
