// HubDownload: a model or dataset of a hub, from its name to a folder on this disk.
//
// plan() asks for the list of files and writes nothing; run() fetches what the plan names, several
// files at once. A file appears under its name only after its length and hash were found right.
//
//     HubDownload download(transport, settings, {note, progress});
//     MR_ASSIGN(const HubPlan plan, download.plan(request));
//     MR_TRY(download.run(plan));
//
// Threads    plan() and run() block, on one thread. cancel() from any thread. Callbacks come on
//            threads of the download, one at a time.
// Ownership  The transport outlives it.
// Errors     A sentence with the way out. Cancelled after cancel(), for good: the object is used up
//            then, as after an error of run(). Bytes that were fetched are kept for the next one.
// Units      Memory: a piece of the transport and one of 1 MiB a file at once; the list 64 MiB.

#pragma once

#include "core/hub/hub_client.h"
#include "core/hub/hub_places.h"

#include <millrace/hub.h>
#include <millrace/status.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <mutex>
#include <stop_token>
#include <string>
#include <vector>

namespace mr {

inline constexpr int kMostHubJobs = 6; // connections to one host

struct HubSettings {
    HubEndpoint endpoint;
    std::filesystem::path cache; // used where a request names no folder
    HubLimits limits{};
};

struct HubCallbacks {
    HubNote note = [](const std::string&) {}; // something that a person should know
    std::function<void(const HubProgress& progress)> progress = [](const HubProgress&) {};
};

class HubDownload
{
public:
    HubDownload(HttpTransport& transport, HubSettings settings, HubCallbacks callbacks);

    Result<HubPlan> plan(const HubRequest& request);
    // Checks the free space first.
    Status run(const HubPlan& plan);
    void cancel() noexcept { m_stop.request_stop(); }

private:
    struct Blob {
        HubFile file;
        std::vector<HubFile> places; // every path with these bytes, this one first
    };

    Status measure(const HubPlaces& places, HubPlan& plan) const;
    static std::vector<Blob> blobsOf(const HubPlan& plan);
    Status runBlobs(const HubPlan& plan, const HubPlaces& places);
    Status getBlob(const HubPlan& plan, const HubPlaces& places, const Blob& blob);
    Status fetchBlob(const HubPlan& plan, const HubPlaces& places, const HubFile& file);
    Result<bool> isThere(const HubPlaces& places, const HubFile& file);
    void note(const std::string& text);
    void count(std::int64_t bytes, std::int64_t files);

    const HubSettings m_settings;
    const HubCallbacks m_callbacks;
    std::stop_source m_stop;
    std::mutex m_mutex;           // callbacks one at a time
    std::int64_t m_doneBytes = 0; // guarded by m_mutex
    HubProgress m_progress;       // guarded by m_mutex
    HubClient m_client;
};

// InvalidArgument where the disk has less room than the plan needs.
Status checkHubSpace(const HubPlan& plan);

} // namespace mr
