// A model or a dataset of a hub: the request, the plan of what would be fetched, and its progress.
//
// Threads  Callbacks of a watch come on threads of the download, one at a time.
// Units    Bytes.

#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <stop_token>
#include <string>
#include <vector>

namespace mr {

enum class HubKind : std::uint8_t { Model, Dataset };

// The hub that the environment names. Whoever has it has asked nobody yet.
struct HubPeer {
    std::string host;      // "huggingface.co"; with its port where that is not the usual one
    bool hasToken = false; // requests carry the user's token
};

struct HubRequest {
    std::string name; // "organisation/model"
    HubKind kind = HubKind::Model;
    std::string revision = "main";    // a branch, a tag or a commit
    std::vector<std::string> include; // patterns of paths; empty: what Millrace can use
    std::vector<std::string> exclude;
    std::filesystem::path into; // a folder for plain files; empty: the cache of the hub's programs
    int jobs = 4;               // files at once
};

struct HubFile {
    std::string path; // in the repository; checked
    std::uint64_t bytes = 0;
    std::string hash;     // lower-case hex: names the blob in the cache
    bool isLarge = false; // the hash is SHA-256 of the bytes; else git's SHA-1 of a blob
};

struct HubPlannedFile {
    HubFile file;
    std::uint64_t haveBytes = 0; // of an earlier download; all of them: only the hash is checked
};

struct HubLeftOut {
    std::string path;
    std::uint64_t bytes = 0;
    std::string reason; // "a script"
};

struct HubPlan {
    HubRequest request;
    std::string commit;
    std::filesystem::path folder; // where the files will be found
    std::vector<HubPlannedFile> files;
    std::vector<HubLeftOut> leftOut;
    std::uint64_t bytes = 0;      // of all files
    std::uint64_t fetchBytes = 0; // without those that are there
    std::uint64_t freeBytes = 0;  // on the disk of the folder
    std::string host;             // where the requests go
    bool hasToken = false;        // they carry the user's token
};

struct HubProgress {
    std::uint64_t doneBytes = 0; // fetched or checked
    std::uint64_t allBytes = 0;  // of the whole plan
    std::int64_t doneFiles = 0;
    std::int64_t allFiles = 0;
};

// Held by whoever waits for a plan or a download.
struct HubWatch {
    std::function<void(const std::string&)> note; // something that a person should know
    std::function<void(const HubProgress&)> progress;
    std::stop_token stop; // ends it within a second, also while the network stalls
};

} // namespace mr
