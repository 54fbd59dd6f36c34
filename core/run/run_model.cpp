#include "core/run/run_model.h"

#include "core/model/frozen_model.h"
#include "core/model/weights.h"

#include <utility>

namespace mr {

Result<std::unique_ptr<MasterReader>> openFirstModel(const RunSetup& setup)
{
    const ParamTable& model = modelOf(setup);
    if (setup.spec.modelDir.empty())
        return initialWeights(setup.config, model, setup.spec.seed);
    return openWeights(setup.spec.modelDir, setup.config, model);
}

RunFolders foldersOf(const RunContext& run)
{
    RunFolders folders{run.saveDir};
    if (run.saveDir != run.runDir)
        folders.push_back(run.runDir);
    return folders;
}

Result<std::unique_ptr<ModelInTurns>> ModelInTurns::open(
    const RunContext& run, MasterReader& first, MasterReader& trained)
{
    auto model = std::unique_ptr<ModelInTurns>(new ModelInTurns(run.setup.turns.trained, trained));
    MR_ASSIGN(model->m_others, openTurned(foldersOf(run), run.progress.turned, first));
    return model;
}

Status ModelInTurns::read(GroupId group, std::int64_t first, const MasterView& out)
{
    MasterReader& from = group == m_group ? m_trained : *m_others;
    return from.read(group, first, out);
}

} // namespace mr
