// The list of a repository's files, as the hub sends it.
//
// Threads  Pure functions.
// Errors   DataCorrupt names the field or the file that is missing, of another type or out of
//          range; a path that is refused is InvalidArgument.
// Source   The hub's HTTP API: /api/models/NAME/revision/REVISION?blobs=true.

#pragma once

#include <millrace/hub.h>
#include <millrace/status.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace mr {

// More are a fault of the list, not a repository.
inline constexpr std::size_t kMostHubFiles = 200'000;
inline constexpr std::size_t kMostHubListBytes = std::size_t{64} << 20;

struct HubListing {
    std::string commit;
    std::vector<HubFile> files; // in the order of their paths
};

// `source` names the list in messages.
Result<HubListing> parseHubList(std::string_view text, const std::string& source);

} // namespace mr
