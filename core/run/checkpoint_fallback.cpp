#include "core/run/checkpoint_fallback.h"

#include "core/store/trained_folders.h"

#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

namespace mr {
namespace fs = std::filesystem;
namespace {

// Where no checkpoint is whole, the weights of one may still be.
std::string wayOut(const std::vector<fs::path>& checkpoints)
{
    std::string text = "\n  Put one of these folders back from a copy, or train again in another "
                       "folder with --out";
    for (const fs::path& path : checkpoints) {
        const fs::path trained = trainedFolderIn(path);
        const std::string name = trained.filename().string();
        const bool isWhole = !trained.empty() && name != "block"; // which is no model
        if (isWhole && verifyCheckpoint(path, VerifyDepth::Bytes, name + "/").ok())
            return text + "; the weights in " + trained.string() +
                   " are whole and can be trained on with --" + name;
    }
    return text;
}

} // namespace

CheckpointFallback::CheckpointFallback(RunContext& run, RunJournal& journal)
    : m_run(run)
    , m_journal(journal)
{
}

bool CheckpointFallback::hasCheckpoint() const
{
    return !namedCheckpoints(m_run.runDir, m_run.saveDir).empty() ||
           !asideCheckpoints(m_run.runDir, m_run.saveDir).empty();
}

Result<RunProgress> CheckpointFallback::load(const fs::path& path, const Prepare& prepare) const
{
    MR_ASSIGN(RunProgress progress, examineCheckpoint(path, m_run.uuid, VerifyDepth::Bytes));
    if (prepare)
        MR_TRY(prepare(progress));
    MR_TRY(loadExamined(m_run.checkpoint(), path, progress));
    return progress;
}

Status CheckpointFallback::loadNewest(const Prepare& prepare)
{
    std::vector<Broken> broken;
    for (const fs::path& path : namedCheckpoints(m_run.runDir, m_run.saveDir)) {
        auto progress = load(path, prepare);
        if (progress.ok()) {
            m_run.progress = std::move(progress).value();
            (void)m_run.store.setCheckpointState(path.string(), "verified").ok();
            m_broken.insert(m_broken.end(), std::make_move_iterator(broken.begin()),
                std::make_move_iterator(broken.end()));
            return {};
        }
        const ErrorKind kind = progress.status().kind();
        const bool isOfFiles = kind == ErrorKind::DataCorrupt || kind == ErrorKind::Io ||
                               kind == ErrorKind::InvalidArgument;
        if (!isOfFiles || !m_run.body->failure().ok())
            return progress.status(); // nothing is wrong with its files
        broken.push_back({path, progress.status()});
    }
    return noneIsWhole(broken);
}

Status CheckpointFallback::noneIsWhole(const std::vector<Broken>& broken) const
{
    std::string text = m_run.runDir.string() + ": no checkpoint of this run is whole:";
    std::vector<fs::path> places;
    for (const Broken& one : broken) {
        text += "\n  " + one.path.filename().string() + ": " + one.why.message();
        places.push_back(one.path);
    }
    for (const fs::path& path : asideCheckpoints(m_run.runDir, m_run.saveDir)) {
        text += "\n  " + path.filename().string() + " (set aside before)";
        if (const Status why = verifyCheckpoint(path, VerifyDepth::Bytes); !why.ok())
            text += ": " + why.message();
        else
            text += ": is whole now; give it back its name to go on from it";
        places.push_back(path);
    }
    for (const Broken& one : broken)
        (void)m_run.store.setCheckpointState(one.path.string(), "broken").ok();
    return Status::error(ErrorKind::DataCorrupt, text + wayOut(places));
}

void CheckpointFallback::report()
{
    for (const Broken& broken : std::exchange(m_broken, {}))
        report(broken);
}

void CheckpointFallback::report(const Broken& broken)
{
    const bool isOther = broken.why.kind() == ErrorKind::InvalidArgument;
    auto aside = setAside(broken.path, isOther ? SetAside::Other : SetAside::Broken);
    const std::string place = aside.ok() ? aside.value().string() : std::string();
    // A history that the run was moved to never knew it.
    (void)m_run.store.setCheckpointState(broken.path.string(), "broken").ok();
    const std::string from = std::to_string(m_run.progress.step);
    std::string text = "The checkpoint " + broken.path.filename().string() + " is broken (" +
                       broken.why.message() + "); the one of step " + from + " was used. ";
    text += aside.ok() ? "It is now in " + place
                       : "It could not be set aside: " + aside.status().message();
    const nlohmann::json data = {{"checkpoint", broken.path.string()},
        {"why", broken.why.message()}, {"step", m_run.progress.step}, {"set_aside", place}};
    m_journal.message(EventLevel::Warning, "checkpoint_broken", text + ".",
        data.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

} // namespace mr
