#include "core/step/scratch_files.h"

#include "core/base/thread.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

namespace mr {
namespace {

constexpr std::chrono::milliseconds kLook{20};

Result<ScratchFile> openOne(const ScratchSpec& wanted, const ScratchOptions& options)
{
    auto opened = ScratchFile::open(wanted, options);
    if (!opened.ok() && opened.status().kind() == ErrorKind::OutOfMemory) {
        // Files that crashed runs left are worthless.
        MR_TRY(removeStaleScratch(wanted.folder).status());
        opened = ScratchFile::open(wanted, options);
    }
    MR_TRY(opened.status());
    opened.value().removeOnClose();
    return opened;
}

// Shared by the fillings of one call.
class Watch
{
public:
    explicit Watch(std::size_t files)
        : m_fillings(files)
    {
    }

    void fill(std::size_t file, const ScratchSpec& wanted, const ScratchOptions& options)
    {
        Filling& filling = m_fillings[file];
        ScratchOptions own = options;
        own.progress = [&](std::uint64_t done, std::uint64_t) { filling.done = done; };
        own.cancelled = [this] { return m_cancelled.load(); };
        const Status status = guarded("filling a scratch file", [&] {
            filling.file = openOne(wanted, own);
            return filling.file->status();
        });
        if (!status.ok())
            filling.file = status;
        m_cancelled = m_cancelled || !status.ok(); // the others need not go on
        const std::scoped_lock lock(m_mutex);
        ++m_ended;
        m_oneEnded.notify_one();
    }

    // Until all have ended.
    void wait(std::uint64_t all, const ScratchOptions& options)
    {
        const auto ask = [&] {
            if (options.cancelled && options.cancelled())
                m_cancelled = true;
        };
        ask();
        for (bool last = false; !last;) {
            std::unique_lock lock(m_mutex);
            last = m_oneEnded.wait_for(lock, kLook, [&] { return m_ended == m_fillings.size(); });
            lock.unlock();
            std::uint64_t done = 0;
            for (const Filling& filling : m_fillings)
                done += filling.done;
            if (options.progress)
                options.progress(done, all);
            ask();
        }
    }

    Result<std::vector<ScratchFile>> files()
    {
        Status failure;
        for (const Filling& filling : m_fillings)
            if (!filling.file->ok() && (failure.ok() || failure.kind() == ErrorKind::Cancelled))
                failure = filling.file->status();
        MR_TRY(failure);
        if (m_cancelled) // all the same, as small files may be
            return Status::error(ErrorKind::Cancelled, "stopped while scratch files were filled");
        std::vector<ScratchFile> files;
        for (Filling& filling : m_fillings)
            files.push_back(std::move(*filling.file).value());
        return files;
    }

private:
    struct Filling {
        std::atomic<std::uint64_t> done = 0;
        std::optional<Result<ScratchFile>> file;
    };

    std::vector<Filling> m_fillings;
    std::atomic<bool> m_cancelled = false;
    std::mutex m_mutex;
    std::condition_variable m_oneEnded;
    std::size_t m_ended = 0;
};

} // namespace

Result<std::vector<ScratchFile>> openScratchFiles(
    std::span<const ScratchSpec> wanted, const ScratchOptions& options)
{
    std::vector<ScratchFile> files;
    if (wanted.size() == 1) { // nothing to wait for meanwhile: asked at every MiB
        MR_ASSIGN(auto file, openOne(wanted.front(), options));
        files.push_back(std::move(file));
        return files;
    }
    Watch watch(wanted.size());
    std::uint64_t all = 0;
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < wanted.size(); ++i) {
        all += wanted[i].bytes;
        threads.emplace_back([&, i] { watch.fill(i, wanted[i], options); });
    }
    watch.wait(all, options);
    threads.clear();
    return watch.files();
}

} // namespace mr
