// millrace: the engine on the command line.

#include "app/cli/commands.h"
#include "app/cli/parse_errors.h"
#include "core/base/cpu_features.h"
#include "core/base/heap.h"
#include "core/base/thread.h"

#include <algorithm>
#include <string_view>

namespace {

// An action's own errors are its exit code; this is for memory and threads that run out below it.
int carryOut(const mr::app::Action& action, const std::string& name, bool json)
{
    int code = 0;
    const mr::Status status = mr::guarded(name, [&] {
        code = action();
        return mr::Status();
    });
    if (status.ok())
        return code;
    (void)mr::app::fail(status, json);
    return 4;
}

int run(int argc, char** argv)
{
    if (const mr::Status status = mr::checkProcessor(); !status.ok())
        return mr::app::fail(status);
    CLI::App app("Fine-tunes language models larger than the memory of one GPU.", "millrace");
    app.set_version_flag("--version", "millrace 0.1.0");
    app.require_subcommand(1);
    mr::app::Action action;
    mr::app::addTrain(app, action);
    mr::app::addResume(app, action);
    mr::app::addEval(app, action);
    mr::app::addGenerate(app, action);
    mr::app::addGet(app, action);
    mr::app::addExport(app, action);
    mr::app::addImport(app, action);
    mr::app::addTokenize(app, action);
    mr::app::addPlan(app, action);
    mr::app::addInspect(app, action);
    mr::app::addModels(app, action);
    mr::app::addRuns(app, action);
    mr::app::addSelftest(app, action);
    mr::app::addBench(app, action);
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        return mr::app::reportParseError(app, error, argc > 1 ? argv[1] : "");
    }
    const bool json = std::any_of(
        argv + 1, argv + argc, [](const char* word) { return word == std::string_view("--json"); });
    return carryOut(action, app.get_subcommands().front()->get_name(), json);
}

} // namespace

// NOLINTNEXTLINE(bugprone-exception-escape): without memory for its options it may as well end
int main(int argc, char** argv)
{
    mr::app::prepareOutput();
    mr::returnFreedMemory();
    mr::loadUnwinder();
    return mr::app::finishOutput(run(argc, argv));
}
