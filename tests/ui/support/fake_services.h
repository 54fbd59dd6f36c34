// Made-up engine for tests of the workstation: a session that ends when told to, a small machine,
// one good model, one good dataset, and the errors that belong to other paths.

#pragma once

#include "bridge/ui_services.h"

#include <QString>

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>

namespace mr::ui::test {

inline const std::string kGoodModel = "/models/small-llama";
inline const std::string kBadModel = "/models/not-a-model";
inline const std::string kPlainModel = "/models/no-template";
inline const std::string kGoodData = "/data/questions.jsonl";
inline const std::string kChatData = "/data/chats.jsonl"; // conversations
inline const std::string kBadData = "/data/broken.jsonl";
inline const std::string kUnclearData = "/data/unclear.jsonl"; // until columns are chosen
inline const std::string kHoleyData = "/data/holes.jsonl";     // four rows cannot be read
inline const std::string kOtherScratch = "/other/scratch";     // usable, on another drive
inline const std::string kFastScratch = "/fast/scratch";       // nothing speaks against it
inline const std::string kMemoryScratch = "/dev/shm/scratch";  // a warning, but it can be used
inline const std::string kFrozenScratch = "/frozen/scratch";   // cannot be written

// Controls of a test, and the record it can read afterwards, for the run that was opened last.
// Thread-safe.
struct FakeRun {
    std::mutex mutex;
    std::condition_variable changed;
    bool started = false;
    bool stopAsked = false;
    int savesAsked = 0;
    bool endNow = false;
    bool stopComesLate = false; // a stop finds the last step done: the run ends as finished
    bool destroyed = false;
    bool fillsFirst = false; // open() and resume() report half a file until a stop
    Status openFailure;      // from open() and resume()
    Status startFailure;     // from start()
    Status endFailure;       // from wait()
    RunSpec openedWith;
    std::vector<RunSpec> opened; // all of them, in order; runs are numbered from 7
    std::string resumedDir;
    std::vector<PauseAnswer> answers;
    Session::Listener listener;
    std::vector<Question> questions; // to the run
    Status askFailure;
    bool answerStopped = false;
    std::vector<AnswerRow> runAnswers; // in the history, for any run
    // Questions to model folders: folder and prompt, in order. While `holdAnswer` is true the
    // second token waits; a stop of the answer ends that.
    std::vector<std::pair<std::string, Prompt>> asked;
    std::atomic<bool> holdAnswer = false;

    void finish();
};

// Everything filled in. The history holds `runs` (may be null).
UiServices fakeServices(
    std::shared_ptr<FakeRun> run, std::shared_ptr<const std::vector<RunRow>> runs = nullptr);

PlanReport fakePlan(bool fits);
// An adapter, which fits wherever the model does.
PlanReport fakeAdapterPlan(std::int64_t rank);
// As planAllMethods(); a rank above 1024 is refused.
Result<std::vector<PlanReport>> fakeMethods(const RunSpec& spec);
// Adds the disk part of a plan that keeps state on a disk.
void addDisk(PlanReport& plan);
DatasetInfo fakeDataset();
DatasetInfo fakeChats();
// Shapes of the data named kUnclearData and kHoleyData.
DatasetInfo fakeUnclear(const DataSource& source);
DatasetInfo fakeHoles(bool skipped);
// Empty files where the sample project has its own.
bool makeSampleFolder(const QString& folder);

} // namespace mr::ui::test
