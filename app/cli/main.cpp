// millrace: the engine on the command line.

#include "app/cli/commands.h"
#include "core/base/cpu_features.h"
#include "core/base/heap.h"

// NOLINTNEXTLINE(bugprone-exception-escape): without memory for its options it may as well end
int main(int argc, char** argv)
{
    mr::returnFreedMemory();
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
    mr::app::addTokenize(app, action);
    mr::app::addPlan(app, action);
    mr::app::addInspect(app, action);
    mr::app::addRuns(app, action);
    mr::app::addSelftest(app, action);
    mr::app::addBench(app, action);
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        return app.exit(error) == 0 ? 0 : 2;
    }
    return action();
}
