#include "core/tier/disk_engine.h"

#include "core/base/clock.h"
#include "core/tier/disk_layout.h"
#include "core/tier/disk_memory.h"
#include "core/tier/disk_verdict.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace mr {
namespace {

constexpr std::int64_t kTestLimitNs = 30'000'000'000; // a disk that is this slow is none

Status noAnswer(const DiskIo& io)
{
    return Status::error(
        ErrorKind::Io, std::string(io.name()) + " did not answer within 30 seconds");
}

// One request and its completion; a busy or interrupted one is asked again, for a while.
Status runOne(DiskIo& io, const DiskRequest& request, const std::string& path)
{
    const std::int64_t until = nowNs() + kTestLimitNs;
    DiskAttempts attempts;
    DiskCompletion completion;
    while (nowNs() < until) {
        if (!io.submit(request))
            return Status::error(ErrorKind::Internal, std::string(io.name()) + " takes nothing");
        int count = 0;
        while (count == 0 && nowNs() < until)
            count = io.reap({&completion, 1}, std::chrono::milliseconds(100));
        if (count == 0)
            return noAnswer(io);
        if (count < 0)
            return diskFailure(
                {request.op, "self-test", path, request.offset, request.bytes, request.memory},
                count);
        const DiskVerdict verdict =
            judgeCompletion(request.op, request.bytes, completion.result, attempts);
        if (verdict.action == DiskAction::Done)
            return {};
        if (verdict.action == DiskAction::Fail || verdict.action == DiskAction::Rest)
            return diskFailure(
                {request.op, "self-test", path, request.offset, request.bytes, request.memory},
                completion.result);
    }
    return noAnswer(io);
}

struct TwoMemories {
    std::span<std::byte> expected;
    std::span<std::byte> read;
};

// Whole pages of the beginning; a file that has none is not tested.
Status testReading(DiskIo& io, const DiskFile& file, int index, const TwoMemories& memory)
{
    const auto bytes = static_cast<std::uint32_t>(
        std::min<std::uint64_t>(kDiskRequestBytes, file.bytes()) / kDiskPageBytes * kDiskPageBytes);
    if (bytes == 0)
        return {};
    std::byte* expected = memory.expected.data();
    const ssize_t got = ::pread(file.descriptor(), expected, bytes, 0);
    if (got != static_cast<ssize_t>(bytes))
        return diskFailure({DiskOp::Read, "self-test", file.path().string(), 0, bytes, expected},
            got < 0 ? -errno : got);
    std::transform(memory.expected.begin(), memory.expected.begin() + bytes, memory.read.begin(),
        [](std::byte value) { return ~value; });
    std::byte* read = memory.read.data();
    MR_TRY(runOne(io, {DiskOp::Read, index, 0, read, bytes, 0}, file.path().string()));
    if (std::memcmp(expected, read, bytes) != 0)
        return Status::error(ErrorKind::DataCorrupt,
            file.path().string() + ": " + std::string(io.name()) + " does not read what is there");
    return {};
}

std::vector<int> descriptorsOf(DiskFiles files)
{
    std::vector<int> out;
    for (const DiskFile* file : files)
        out.push_back(file->descriptor());
    return out;
}

std::string accessWords(DiskFiles files)
{
    for (const DiskFile* file : files)
        if (!file->direct())
            return file->path().string() + ": " + file->access();
    return "direct I/O";
}

} // namespace

Status testDiskIo(DiskIo& io, DiskFiles files)
{
    const DiskMemory out(kDiskRequestBytes);
    const DiskMemory in(kDiskRequestBytes);
    // Never the same bytes twice: a file that is used again still holds those of the last test.
    const auto now = static_cast<std::uint64_t>(nowNs());
    for (std::size_t i = 0; i < files.size(); ++i) {
        if (files[i]->isReadOnly()) {
            MR_TRY(testReading(io, *files[i], static_cast<int>(i), {out.all(), in.all()}));
            continue;
        }
        const auto bytes = static_cast<std::uint32_t>(
            std::min<std::uint64_t>(kDiskRequestBytes, files[i]->bytes() - kDiskPageBytes));
        for (std::size_t at = 0; at < bytes; at += sizeof(now)) {
            const std::uint64_t word = (now + i + at) * 0x9E3779B97F4A7C15U;
            const std::uint64_t other = ~word;
            std::memcpy(out.data() + at, &word, sizeof(word));
            std::memcpy(in.data() + at, &other, sizeof(other));
        }
        const int file = static_cast<int>(i);
        const std::string path = files[i]->path().string();
        MR_TRY(runOne(io, {DiskOp::Write, file, kDiskPageBytes, out.data(), bytes, 0}, path));
        MR_TRY(runOne(io, {DiskOp::Read, file, kDiskPageBytes, in.data(), bytes, 0}, path));
        if (std::memcmp(out.data(), in.data(), bytes) != 0)
            return Status::error(ErrorKind::DataCorrupt,
                path + " does not give back what " + std::string(io.name()) + " wrote to it");
    }
    return {};
}

Result<DiskEngineChoice> chooseDiskEngine(
    DiskFiles files, const DiskEngineWish& wish, const UringCalls& calls)
{
    std::string refused;
    if (wish.engine != DiskEngine::Threads) {
        UringOpening opening = openUring(descriptorsOf(files), wish.memory, calls);
        refused = opening.words;
        if (opening.io) {
            const Status test = testDiskIo(*opening.io, files);
            if (test.ok())
                return DiskEngineChoice{
                    std::move(opening.io), opening.words + ", " + accessWords(files)};
            refused = "io_uring failed its test: " + test.message();
        }
        if (wish.engine == DiskEngine::Uring)
            return Status::error(ErrorKind::Io, refused);
    }
    auto io = makeThreadIo(descriptorsOf(files), wish.threads);
    MR_TRY(testDiskIo(*io, files));
    std::string about = std::string(io->name()) + " with pread and pwrite, " + accessWords(files);
    if (!refused.empty())
        about += "; " + refused;
    return DiskEngineChoice{std::move(io), std::move(about)};
}

} // namespace mr
