// A model or a dataset of a hub: the request, the plan of what would be fetched, and its progress.
//
// Units  Bytes.

#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace mr {

enum class HubKind : std::uint8_t { Model, Dataset };

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

} // namespace mr
