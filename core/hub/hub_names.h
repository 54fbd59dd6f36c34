// Names of repositories, revisions and files, and the addresses that are made of them.
//
// All of them are checked before they become a path or a part of an address: paths come from the
// hub's list, and the hub is a stranger.
//
// Threads  Pure functions.
// Errors   InvalidArgument names the name and what is wrong with it.

#pragma once

#include <millrace/hub.h>
#include <millrace/status.h>

#include <string>
#include <string_view>
#include <vector>

namespace mr {

// "name" or "organisation/name".
Status checkHubName(std::string_view name);
Status checkHubRevision(std::string_view revision);

// A path inside a repository: relative, without "..", of lengths that a disk takes.
Status checkHubPath(std::string_view path);
// No path twice, and no file where another path has a folder.
Status checkHubPaths(const std::vector<HubFile>& files);

// 40 hex digits.
bool isCommit(std::string_view text);
// Lower-case hex digits, `count` of them.
bool isHex(std::string_view text, std::size_t count);

// Behind the endpoint: "/api/models/NAME/revision/REVISION?blobs=true".
std::string listAddress(const HubRequest& request);
// "/NAME/resolve/COMMIT/PATH"; a dataset's begins with "/datasets".
std::string fileAddress(const HubRequest& request, std::string_view commit, std::string_view path);
// The page for people, where a licence is accepted.
std::string pageAddress(const HubRequest& request);

} // namespace mr
