#include "core/run/run_context.h"

#include "core/base/clock.h"

#include <utility>

namespace mr {

RunContext::RunContext(Device& usedDevice, RunStore& usedStore, EngineHooks usedHooks)
    : device(usedDevice)
    , store(usedStore)
    , hooks(std::move(usedHooks))
{
}

std::int64_t RunContext::activeMs() const
{
    return resumedMs + (nowNs() - startNs) / 1'000'000;
}

bool RunContext::isStopWanted() const
{
    const auto& isCancelled = hooks.opening.isCancelled;
    return stopRequested || (isCancelled && isCancelled());
}

void RunContext::requestStop() noexcept
{
    stopRequested = true;
    for (RunState from : {RunState::Running, RunState::Paused})
        state.compare_exchange_strong(from, RunState::Stopping);
    gate.stop();
}

CheckpointContext RunContext::checkpoint() const
{
    return {setup.config, setup.table, body->memory(), body->executor(), modelFolder(setup.spec),
        uuid, data.chatTemplate, baseHash};
}

std::vector<std::filesystem::path> RunContext::checkpoints() const
{
    return listCheckpoints(runDir, saveDir);
}

} // namespace mr
