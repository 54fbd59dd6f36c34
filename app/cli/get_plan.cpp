#include "app/cli/get_plan.h"

#include "app/cli/output.h"
#include "core/base/bytes.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

namespace mr::app {
namespace {

constexpr int kPollMs = 100;
constexpr std::size_t kMostShown = 60; // files; --json has all of them

struct LeftOutSum {
    std::size_t files = 0;
    std::uint64_t bytes = 0;
    std::string first;
};

void printLeftOut(const HubPlan& plan)
{
    std::map<std::string, LeftOutSum> sums;
    for (const HubLeftOut& left : plan.leftOut) {
        LeftOutSum& sum = sums[left.reason];
        if (sum.files++ == 0)
            sum.first = left.path;
        sum.bytes += left.bytes;
    }
    for (const auto& [reason, sum] : sums)
        printText("%s", fmt::format("left out, {}: {}{} ({})", reason, sum.first,
                            sum.files > 1 ? fmt::format(" and {} more", sum.files - 1) : "",
                            formatBytes(sum.bytes))
                            .c_str());
}

std::string haveText(const HubPlannedFile& planned)
{
    if (planned.haveBytes == 0)
        return {};
    return planned.haveBytes == planned.file.bytes
               ? ", there already"
               : ", " + formatBytes(planned.haveBytes) + " there already";
}

// The first letter of a line from the terminal; 0: it has ended.
char readAnswer(const std::function<bool()>& isStopped)
{
    char answer = 0;
    for (bool isFirst = true;;) {
        pollfd input{STDIN_FILENO, POLLIN, 0};
        const int ready = ::poll(&input, 1, kPollMs);
        if (isStopped() || (ready < 0 && errno != EINTR))
            return 0;
        if (ready <= 0)
            continue;
        char c = 0;
        if (::read(STDIN_FILENO, &c, 1) != 1)
            return 0;
        if (c == '\n')
            return answer;
        if (isFirst)
            answer = c;
        isFirst = false;
    }
}

} // namespace

void printPlan(const HubPlan& plan)
{
    printText(
        "%s", fmt::format("{} at {} ({})", plan.request.name, plan.request.revision, plan.commit)
                  .c_str());
    std::size_t shown = 0;
    for (const HubPlannedFile& planned : plan.files)
        if (++shown <= kMostShown)
            printText("%s", fmt::format("  {} ({}{})", planned.file.path,
                                formatBytes(planned.file.bytes), haveText(planned))
                                .c_str());
    if (shown > kMostShown)
        printText("  and %zu more", shown - kMostShown);
    printLeftOut(plan);
    printText("%s",
        fmt::format("{} files, {}; to be fetched: {}; free on the disk: {}", plan.files.size(),
            formatBytes(plan.bytes), formatBytes(plan.fetchBytes), formatBytes(plan.freeBytes))
            .c_str());
    printText("they go to %s", plan.folder.c_str());
    printText(
        "%s", fmt::format("requests: one for each file to {}{}, and to the storage that it may "
                          "name, without a token",
                  plan.host, plan.hasToken ? ", with your token" : "")
                  .c_str());
}

nlohmann::json planEvent(const HubPlan& plan)
{
    using Json = nlohmann::json;
    Json files = Json::array();
    for (const HubPlannedFile& planned : plan.files)
        files.push_back({{"path", planned.file.path}, {"bytes", planned.file.bytes},
            {"have_bytes", planned.haveBytes}});
    Json leftOut = Json::array();
    for (const HubLeftOut& left : plan.leftOut)
        leftOut.push_back({{"path", left.path}, {"bytes", left.bytes}, {"reason", left.reason}});
    return {{"event", "plan"}, {"name", plan.request.name}, {"revision", plan.request.revision},
        {"commit", plan.commit}, {"folder", plan.folder.string()}, {"files", files},
        {"left_out", leftOut}, {"bytes", plan.bytes}, {"fetch_bytes", plan.fetchBytes},
        {"free_bytes", plan.freeBytes}, {"host", plan.host}, {"token", plan.hasToken}};
}

Status askForConsent(const HubPlan& plan, const std::function<bool()>& isStopped)
{
    if (::isatty(STDIN_FILENO) != 1)
        return Status::error(ErrorKind::InvalidArgument,
            "nothing was fetched: there is no terminal to ask on; add --yes to fetch these files");
    printPiece(fmt::format("Fetch {} from {}? [y/N] ", formatBytes(plan.fetchBytes), plan.host));
    const char answer = readAnswer(isStopped);
    if (answer == 'y' || answer == 'Y')
        return {};
    if (answer == 0)
        printPiece("\n");
    return Status::error(ErrorKind::Cancelled, "nothing was fetched");
}

} // namespace mr::app
