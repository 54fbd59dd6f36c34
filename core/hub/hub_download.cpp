#include "core/hub/hub_download.h"

#include "core/base/bytes.h"
#include "core/base/file.h"
#include "core/base/shown_text.h"
#include "core/base/thread.h"
#include "core/hub/blob_fetch.h"
#include "core/hub/blob_lock.h"
#include "core/hub/hub_choice.h"
#include "core/hub/hub_list.h"
#include "core/hub/hub_names.h"
#include "core/hub/list_body.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <optional>
#include <thread>
#include <utility>

namespace mr {
namespace fs = std::filesystem;
namespace {

constexpr std::uint64_t kSpareBytes = std::uint64_t{64} << 20; // folders, links, others' files

Status checkRequest(const HubRequest& request)
{
    MR_TRY(checkHubName(request.name));
    MR_TRY(checkHubRevision(request.revision));
    if (request.jobs < 1 || request.jobs > kMostHubJobs)
        return Status::error(ErrorKind::InvalidArgument,
            fmt::format(
                "{} files at once cannot be fetched; choose 1 to {}", request.jobs, kMostHubJobs));
    return {};
}

// 0 where it is not a file.
std::uint64_t fileBytes(const fs::path& path)
{
    std::error_code error;
    const std::uint64_t bytes = fs::is_regular_file(path, error) ? fs::file_size(path, error) : 0;
    return error ? 0 : bytes;
}

Status wrongHash(const HubPlan& plan, const HubFile& file)
{
    return Status::error(ErrorKind::DataCorrupt,
        fmt::format("{}: file {}: the bytes that came have not the hash that the list says; they "
                    "were removed. Use the same command again, and if that does not help, tell the "
                    "hub",
            plan.host, shownName(file.path)));
}

} // namespace

HubDownload::HubDownload(HttpTransport& transport, HubSettings settings, HubCallbacks callbacks)
    : m_settings(std::move(settings))
    , m_callbacks(std::move(callbacks))
    , m_client(
          transport, m_settings.endpoint, m_settings.limits,
          [this](const std::string& text) { note(text); }, m_stop.get_token())
{
}

Result<HubPlan> HubDownload::plan(const HubRequest& request)
{
    MR_TRY(checkRequest(request));
    ListBody list;
    MR_TRY(m_client.get({request, {}}, listAddress(request), list));
    const std::string host = m_settings.endpoint.url.shownHost();
    MR_ASSIGN(const HubListing listing, parseHubList(list.text(), host + ": list of files"));
    MR_ASSIGN(HubChoice choice, chooseHubFiles(request, listing.files));
    HubPlan plan;
    plan.request = request;
    plan.commit = listing.commit;
    plan.host = host;
    plan.hasToken = !m_settings.endpoint.token.empty();
    plan.leftOut = std::move(choice.leftOut);
    for (HubFile& file : choice.files)
        plan.files.push_back({std::move(file), 0});
    const HubPlaces places(request, m_settings.cache, plan.commit);
    plan.folder = places.folder();
    MR_TRY(measure(places, plan));
    MR_ASSIGN(plan.freeBytes, freeBytes(plan.folder));
    return plan;
}

Status HubDownload::measure(const HubPlaces& places, HubPlan& plan) const
{
    std::map<std::string, std::uint64_t> seen; // by hash
    for (HubPlannedFile& planned : plan.files) {
        const HubFile& file = planned.file;
        MR_TRY(places.check(file));
        const auto [known, isNew] = seen.emplace(file.hash, file.bytes);
        if (known->second != file.bytes)
            return Status::error(ErrorKind::DataCorrupt,
                plan.host + ": file " + shownName(file.path) +
                    " has the hash of a file of another length; the list is refused");
        const bool isWhole =
            fs::exists(places.whole(file)) && fileBytes(places.whole(file)) == file.bytes;
        const std::uint64_t begun = fileBytes(places.incomplete(file));
        if (isWhole || (!isNew && !places.isPlain()))
            planned.haveBytes = file.bytes; // already counted where two paths have one blob
        else
            planned.haveBytes = isNew && begun <= file.bytes ? begun : 0;
        plan.bytes += isNew || places.isPlain() ? file.bytes : 0;
        plan.fetchBytes += file.bytes - planned.haveBytes;
    }
    return {};
}

Status checkHubSpace(const HubPlan& plan)
{
    if (plan.fetchBytes == 0 || plan.fetchBytes + kSpareBytes <= plan.freeBytes)
        return {};
    return Status::error(ErrorKind::InvalidArgument,
        fmt::format(
            "{} are to be fetched, and {} has room for {}; free some, or name another folder "
            "with --into or in HF_HUB_CACHE",
            formatBytes(plan.fetchBytes), plan.folder.string(), formatBytes(plan.freeBytes)));
}

Status HubDownload::run(const HubPlan& plan)
{
    MR_TRY(checkHubSpace(plan));
    const HubPlaces places(plan.request, m_settings.cache, plan.commit);
    {
        const std::scoped_lock lock(m_mutex);
        m_progress.allBytes = plan.bytes;
        m_progress.allFiles = static_cast<std::int64_t>(plan.files.size());
    }
    MR_TRY(runBlobs(plan, places));
    return places.finish();
}

std::vector<HubDownload::Blob> HubDownload::blobsOf(const HubPlan& plan)
{
    std::vector<Blob> blobs;
    std::map<std::string, std::size_t> known;
    for (const HubPlannedFile& planned : plan.files) {
        const auto [found, isNew] = known.emplace(planned.file.hash, blobs.size());
        if (isNew)
            blobs.push_back({planned.file, {}});
        blobs[found->second].places.push_back(planned.file);
    }
    return blobs;
}

Status HubDownload::runBlobs(const HubPlan& plan, const HubPlaces& places)
{
    const std::vector<Blob> blobs = blobsOf(plan);
    std::atomic<std::size_t> next = 0;
    std::mutex mutex;
    Status first; // guarded by mutex
    const auto fail = [&](const Status& status) {
        const std::scoped_lock lock(mutex);
        if (first.ok())
            first = status;
        m_stop.request_stop();
    };
    {
        std::vector<std::jthread> threads;
        const auto work = [&](const std::stop_token&) -> Status {
            for (std::size_t i = next++; i < blobs.size(); i = next++)
                MR_TRY(getBlob(plan, places, blobs[i]));
            return {};
        };
        const std::size_t count =
            std::min(blobs.size(), static_cast<std::size_t>(std::max(plan.request.jobs, 1)));
        for (std::size_t i = 0; i < count; ++i)
            threads.push_back(startThread({"mr-hub"}, work, fail));
    }
    return first;
}

Status HubDownload::getBlob(const HubPlan& plan, const HubPlaces& places, const Blob& blob)
{
    if (m_stop.stop_requested())
        return hubFault({HttpFault::Cancelled, {}}, {}, {});
    MR_TRY(fetchBlob(plan, places, blob.file));
    for (const HubFile& file : blob.places) {
        const bool isFirst = file.path == blob.file.path;
        const bool isCopied = places.isPlain() && !isFirst;
        bool isDone = false;
        if (isCopied) {
            MR_ASSIGN(isDone, isThere(places, file));
        }
        if (!isDone) {
            MR_TRY(places.put(file, places.whole(blob.file)));
        }
        count(isCopied ? static_cast<std::int64_t>(file.bytes) : 0, 1);
    }
    return {};
}

// A blob of the cache that is wrong is replaced; a file of the user's is not.
Result<bool> HubDownload::isThere(const HubPlaces& places, const HubFile& file)
{
    const fs::path path = places.whole(file);
    std::error_code error;
    if (!fs::exists(fs::symlink_status(path, error)))
        return false;
    MR_ASSIGN(const bool isRight, isHubFile(path, file, m_stop.get_token()));
    if (isRight)
        return true;
    if (places.isPlain())
        return Status::error(ErrorKind::InvalidArgument,
            path.string() +
                " is there and is another file; move it away or name another folder with --into");
    note(path.string() + " is damaged and is fetched again");
    return false;
}

Status HubDownload::fetchBlob(const HubPlan& plan, const HubPlaces& places, const HubFile& file)
{
    MR_TRY(places.prepare(file));
    const std::stop_token stop = m_stop.get_token();
    MR_ASSIGN(const BlobLock lock, BlobLock::take(places.lock(file), stop, [&] {
        note("another program fetches " + shownName(file.path) + ": waiting for it");
    }));
    MR_ASSIGN(const bool isDone, isThere(places, file));
    if (isDone) {
        count(static_cast<std::int64_t>(file.bytes), 0);
        return {};
    }
    BlobFetch fetch(file, places.incomplete(file), [this](std::int64_t bytes) { count(bytes, 0); });
    MR_TRY(fetch.takeUp(stop));
    for (bool isSecond = false;; isSecond = true) {
        if (!fetch.isComplete()) {
            const std::string address = fileAddress(plan.request, plan.commit, file.path);
            MR_TRY(m_client.get({plan.request, file.path}, address, fetch));
        }
        MR_ASSIGN(const bool isRight, fetch.check());
        if (isRight)
            return places.keep(file);
        if (isSecond || !fetch.isPieced())
            return wrongHash(plan, file);
        note(shownName(file.path) + ": its pieces do not make the right file, so it begins anew");
        MR_TRY(fetch.startAnew());
    }
}

void HubDownload::note(const std::string& text)
{
    const std::scoped_lock lock(m_mutex);
    m_callbacks.note(text);
}

void HubDownload::count(std::int64_t bytes, std::int64_t files)
{
    const std::scoped_lock lock(m_mutex);
    m_doneBytes += bytes;
    m_progress.doneBytes = static_cast<std::uint64_t>(std::max<std::int64_t>(0, m_doneBytes));
    m_progress.doneFiles += files;
    m_callbacks.progress(m_progress);
}

} // namespace mr
