// UiServices: every call of the window to the engine, as functions that the application supplies.
//
// The UI library links no engine: app/compose fills these in, tests fill in fakes.
//
// Threads    Every function blocks (files, device) and is called from a worker, never from the UI
//            thread; several may run at once. The struct itself is copied freely.
// Ownership  Objects that the functions capture must outlive the main window.
// Errors     As in the <millrace/...> header of the same name.

#pragma once

#include <millrace/data_checks.h>
#include <millrace/export_model.h>
#include <millrace/hub.h>
#include <millrace/library.h>
#include <millrace/local_models.h>
#include <millrace/planner.h>
#include <millrace/run_edits.h>
#include <millrace/run_reader.h>
#include <millrace/run_spec.h>
#include <millrace/scratch.h>
#include <millrace/session.h>
#include <millrace/try_it.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace mr::ui {

struct UiServices {
    // A session on the device that fits the spec; not started yet.
    std::function<Result<std::unique_ptr<Session>>(const RunSpec&, Session::Listener, OpeningWatch)>
        open;
    std::function<Result<std::unique_ptr<Session>>(
        const std::string& runDir, Session::Listener, OpeningWatch)>
        resume;

    std::function<Result<std::unique_ptr<RunReader>>(const std::string& database)> openReader;
    // `path` is the folder of a model, a checkpoint or a run.
    std::function<Result<Answer>(const std::string& path, const Prompt&, const AnswerWatch&)>
        answer;
    std::function<Result<ExportOutcome>(const ExportOrder&, const ExportProgress&)> exportModel;
    // Looks in the places of other programs and below these folders.
    std::function<LocalModels(const std::vector<std::string>& folders)> findModels;
    // Names the host that would be asked, and opens nothing. The two functions below are all that
    // connects; they are called when the user pressed the button beside that name.
    std::function<Result<HubPeer>()> hubPeer;
    std::function<Result<HubPlan>(const HubRequest&, const HubWatch&)> planDownload;
    std::function<Status(const HubPlan&, const HubWatch&)> runDownload;
    std::function<MachineInfo()> inspectMachine;
    std::function<Result<ModelInfo>(const std::string& path)> inspectModel;
    std::function<Result<DatasetInfo>(
        const DataSource&, const std::string& modelDir, std::int64_t seqLen, int previewRows)>
        inspectDataset;
    std::function<Result<DataChecks>(const CheckRequest&)> checkDataset;
    std::function<Result<std::vector<RowText>>(
        const DataSource&, const RowList& rows, std::size_t bytes)>
        readRowTexts;
    std::function<Result<ScratchInfo>(const std::string& path)> inspectScratch;
    std::function<Result<ScratchSpeed>(const std::string& path, const ScratchMeasuring&)>
        measureScratch;
    std::function<Status(const RunSpec&)> checkSpec;
    std::function<Result<RunSpec>(const RunSpec&, std::int64_t trainRows)> resolveSpec;
    std::function<Result<PlanReport>(const RunSpec&)> planRun;
    std::function<Result<std::vector<PlanReport>>(const RunSpec&)> planAllMethods;
    // Measures anew the rates that planRun forecasts with.
    std::function<Status(const RunSpec&)> measureRates;
    std::function<Result<PlanReport>(const std::string& json)> planFromJson;

    // Edits of the history; null: read-only. Borrowed, as the objects that the functions capture.
    RunEdits* edits = nullptr;

    std::vector<PolicyName> policies = {{"auto", {}}}; // all that are built in, "auto" first
    std::string database;                              // history
    std::string runsFolder;           // where run folders are made when none is named
    std::string sampleDir;            // resources/sample; it may be missing
    std::string program = "Millrace"; // and its version
    std::string logFile;              // written by AppLog
};

} // namespace mr::ui
