// Which checkpoint a run goes on from, and what becomes of those that are damaged.
//
// The newest that is whole and of this run is taken. Nothing is touched until the run really goes
// on: then those that were passed over are set aside, marked in the history, and told of.

#include "core/run/engine.h"

#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

namespace mr {
namespace fs = std::filesystem;
namespace {

// The way on where nothing is whole: the weights of one may still be.
std::string wayOut(const std::vector<fs::path>& checkpoints)
{
    std::string text = "\n  Put one of these folders back from a copy, or train again in another "
                       "folder with --out";
    for (const fs::path& path : checkpoints)
        if (verifyCheckpoint(path, VerifyDepth::Bytes, "model/").ok())
            return text + "; the weights in " + (path / "model").string() +
                   " are whole and can be trained on with --model";
    return text;
}

} // namespace

bool Engine::hasCheckpoint() const
{
    return !namedCheckpoints(m_runDir, m_saveDir).empty() ||
           !asideCheckpoints(m_runDir, m_saveDir).empty();
}

Status Engine::loadNewestCheckpoint()
{
    std::vector<BrokenCheckpoint> broken;
    for (const fs::path& path : namedCheckpoints(m_runDir, m_saveDir)) {
        auto progress = loadCheckpoint(checkpointContext(), path);
        if (progress.ok()) {
            m_progress = std::move(progress).value();
            m_savedStep = m_progress.step;
            (void)m_store.setCheckpointState(path.string(), "verified").ok();
            m_otherIsa = m_progress.instructionSet != m_device.info().instructionSet;
            m_broken.insert(m_broken.end(), std::make_move_iterator(broken.begin()),
                std::make_move_iterator(broken.end()));
            return {};
        }
        const ErrorKind kind = progress.status().kind();
        const bool isOfFiles = kind == ErrorKind::DataCorrupt || kind == ErrorKind::Io ||
                               kind == ErrorKind::InvalidArgument;
        if (!isOfFiles || !m_body->failure().ok())
            return progress.status(); // nothing is wrong with its files
        broken.push_back({path, progress.status()});
    }
    return noneIsWhole(broken);
}

Status Engine::noneIsWhole(const std::vector<BrokenCheckpoint>& broken) const
{
    std::string text = m_runDir.string() + ": no checkpoint of this run is whole:";
    std::vector<fs::path> places;
    for (const BrokenCheckpoint& one : broken) {
        text += "\n  " + one.path.filename().string() + ": " + one.why.message();
        places.push_back(one.path);
    }
    for (const fs::path& path : asideCheckpoints(m_runDir, m_saveDir)) {
        text += "\n  " + path.filename().string() + " (set aside before)";
        if (const Status why = verifyCheckpoint(path, VerifyDepth::Bytes); !why.ok())
            text += ": " + why.message();
        else
            text += ": is whole now; give it back its name to go on from it";
        places.push_back(path);
    }
    for (const BrokenCheckpoint& one : broken)
        (void)m_store.setCheckpointState(one.path.string(), "broken").ok();
    return Status::error(ErrorKind::DataCorrupt, text + wayOut(places));
}

void Engine::reportBroken(std::int64_t timeMs)
{
    for (const BrokenCheckpoint& broken : std::exchange(m_broken, {}))
        reportBroken(broken, timeMs);
}

void Engine::reportBroken(const BrokenCheckpoint& broken, std::int64_t timeMs)
{
    const bool isOther = broken.why.kind() == ErrorKind::InvalidArgument;
    auto aside = setAside(broken.path, isOther ? SetAside::Other : SetAside::Broken);
    const std::string place = aside.ok() ? aside.value().string() : std::string();
    // A history that the run was moved to never knew it.
    (void)m_store.setCheckpointState(broken.path.string(), "broken").ok();
    const std::string from = std::to_string(m_progress.step);
    std::string text = "The checkpoint " + broken.path.filename().string() + " is broken (" +
                       broken.why.message() + "); the one of step " + from + " was used. ";
    text += aside.ok() ? "It is now in " + place
                       : "It could not be set aside: " + aside.status().message();
    const nlohmann::json data = {{"checkpoint", broken.path.string()},
        {"why", broken.why.message()}, {"step", m_progress.step}, {"set_aside", place}};
    m_recorder->message(EventLevel::Warning, "checkpoint_broken", m_progress.step, timeMs,
        text + ".", data.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

} // namespace mr
