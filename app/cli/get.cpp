// `millrace get NAME`: a model or dataset from a hub, into the cache that other programs share.
//
// The only command that opens a connection. The code for it is in a plugin that is loaded here.

#include "app/cli/byte_progress.h"
#include "app/cli/commands.h"
#include "app/cli/get_plan.h"
#include "app/cli/stop_on_signal.h"
#include "app/hub_session.h"
#include "core/base/clock.h"

#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <stop_token>
#include <thread>

namespace mr::app {
namespace {

struct GetOptions {
    HubRequest request;
    std::string into;
    bool isDataset = false;
    bool yes = false;
    bool json = false;
};

ByteProgress makeProgress(bool json)
{
    return json ? ByteProgress(ByteProgressKind::Json, printLine) : progressOnStderr();
}

void tell(const std::string& text, bool json)
{
    if (json)
        printJson({{"event", "note"}, {"text", text}});
    else
        say(text);
}

HubWatch watchOf(ByteProgress& progress, bool json, const std::stop_token& stop)
{
    HubWatch watch;
    watch.note = [&progress, json](const std::string& text) {
        progress.end();
        tell(text, json);
    };
    watch.progress = [&progress](const HubProgress& now) { progress.show(nowNs(), now); };
    watch.stop = stop;
    return watch;
}

Status consent(const GetOptions& options, const HubPlan& plan, const StopOnSignal& signal)
{
    if (options.yes)
        return {};
    if (options.json)
        return Status::error(ErrorKind::InvalidArgument,
            "nothing was fetched: with --json nobody is asked; add --yes to fetch these files");
    return askForConsent(plan, [&signal] { return signal.isSeen(); });
}

Result<HubPlan> fetch(const GetOptions& options, HubSession& session, const StopOnSignal& signal)
{
    MR_ASSIGN(HubPlan plan, session.plan(options.request));
    if (options.json)
        printJson(planEvent(plan));
    else
        printPlan(plan);
    MR_TRY(checkHubSpace(plan));
    MR_TRY(consent(options, plan, signal));
    MR_TRY(session.run(plan));
    return plan;
}

Result<HubPlan> getNow(const GetOptions& options)
{
    MR_ASSIGN(const HubSettings settings, hubSettings(options.request));
    const StopOnSignal signal;
    std::stop_source stop;
    ByteProgress progress = makeProgress(options.json);
    MR_ASSIGN(const auto session,
        HubSession::open(settings, watchOf(progress, options.json, stop.get_token())));
    const HubPeer peer = peerOf(settings);
    tell("asks " + peer.host + " for the list of files of " + options.request.name +
             (peer.hasToken ? ", with your token" : ""),
        options.json);
    const std::jthread watch([&](const std::stop_token& end) {
        while (!end.stop_requested() && !signal.isSeen())
            std::this_thread::sleep_for(std::chrono::milliseconds(50));
        if (signal.isSeen())
            stop.request_stop();
    });
    Result<HubPlan> done = fetch(options, *session, signal);
    progress.end();
    return done;
}

int get(const GetOptions& options)
{
    auto done = getNow(options);
    if (!done.ok())
        return fail(done.status(), options.json);
    const HubPlan& plan = done.value();
    if (options.json) {
        printJson({{"event", "end"}, {"path", plan.folder.string()}, {"commit", plan.commit},
            {"bytes", plan.bytes}});
        return 0;
    }
    printText("%s is in %s", plan.request.name.c_str(), plan.folder.c_str());
    return 0;
}

} // namespace

void addGet(CLI::App& app, Action& action)
{
    auto options = std::make_shared<GetOptions>();
    HubRequest& request = options->request;
    CLI::App* command = app.add_subcommand(
        "get", "Fetch a model or dataset from a hub (HF_ENDPOINT; https://huggingface.co)");
    command->add_option("name", request.name, "As the hub names it: organisation/model")
        ->required();
    command->add_flag("--dataset", options->isDataset, "It is a dataset");
    command->add_option("--revision", request.revision, "Branch, tag or commit (main)");
    command
        ->add_option("--include", request.include,
            "Fetch the files whose paths match this pattern, instead of what Millrace can use; * "
            "stands for any characters. May be repeated")
        ->allow_extra_args(false);
    command
        ->add_option(
            "--exclude", request.exclude, "Leave out what matches this pattern. May be repeated")
        ->allow_extra_args(false);
    command->add_option("--into", options->into,
        "Folder for plain files; without it they go to the cache that Hugging Face's programs use");
    command->add_option("--jobs", request.jobs, "Files at once, 1 to 6 (4)");
    command->add_flag("--yes", options->yes, "Fetch without asking first");
    command->add_flag("--json", options->json, "Events as JSON, one a line; asks nothing");
    command->callback([options, &action] {
        options->request.kind = options->isDataset ? HubKind::Dataset : HubKind::Model;
        options->request.into = options->into;
        action = [options] { return get(*options); };
    });
}

} // namespace mr::app
