// The model that a run begins with, and what it has become where groups of weights take turns.
//
// Threads  Engine thread; before start(), the thread that opens the run. Blocks on files.
// Errors   Those of openWeights() and openTurned().

#pragma once

#include "core/model/master.h"
#include "core/run/run_context.h"
#include "core/save/turned_groups.h"

#include <millrace/status.h>

#include <memory>

namespace mr {

// All of its weights. The setup outlives the reader.
Result<std::unique_ptr<MasterReader>> openFirstModel(const RunSetup& setup);

// Where the run has files of groups.
RunFolders foldersOf(const RunContext& run);

// The whole model where groups take turns: the trained one from `trained`, others from their files,
// or from `first`.
class ModelInTurns final : public MasterReader
{
public:
    // All is lent and outlives this.
    static Result<std::unique_ptr<ModelInTurns>> open(
        const RunContext& run, MasterReader& first, MasterReader& trained);

    Status read(GroupId group, std::int64_t first, const MasterView& out) override;

private:
    ModelInTurns(GroupId group, MasterReader& trained)
        : m_group(group)
        , m_trained(trained)
    {
    }

    GroupId m_group;
    MasterReader& m_trained;
    std::unique_ptr<MasterReader> m_others;
};

} // namespace mr
