#include "app/exports.h"

#include "app/export_record.h"
#include "app/ollama_export.h"
#include "app/ollama_server.h"
#include "core/job/job_export.h"
#include "core/save/adapter_export.h"
#include "core/save/folder_export.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <utility>

namespace mr::app {
namespace {

Status checkOrder(const ExportOrder& order)
{
    const ExportFormInfo& info = infoOf(order.form);
    if (!order.ollamaName.empty() && order.form != ExportForm::Ollama)
        return Status::error(ErrorKind::InvalidArgument,
            fmt::format("--create goes with --to ollama, not with --to {}", info.name));
    const bool isListed = std::ranges::find(info.types, order.type) != info.types.end();
    const bool isKnown = parseExportType(order.type) || parseGgufForm(order.type);
    if (order.type == "auto" || (isListed && isKnown))
        return {};
    return Status::error(ErrorKind::InvalidArgument,
        info.types.empty()
            ? fmt::format("--to {} has one type of weights; leave --precision out", info.name)
            : fmt::format("--to {} has no type {}; use {}", info.name, order.type,
                  fmt::join(info.types, ", ")));
}

Result<ExportOutcome> writeFolder(const ExportOrder& order, const WriteProgress& progress)
{
    FolderOptions options{parseExportType(order.type), order.original, order.shardBytes, progress};
    if (options.shardBytes == 0)
        return Status::error(ErrorKind::InvalidArgument, "files of 0 bytes hold no tensor");
    MR_ASSIGN(const ModelPlace place, modelPlaceOf(order.model, order.adapter));
    if (order.form == ExportForm::Merged && place.adapter.empty())
        return Status::error(ErrorKind::InvalidArgument,
            place.model + ": has no adapter to merge; use --to safetensors");
    MR_ASSIGN(const FolderReport report, exportFolder(place, order.out, options));
    ExportOutcome out{order.out, report.bytes, std::string(name(report.type)), {}, {}, {}};
    out.facts.emplace_back("every tensor was read back and is equal");
    if (report.isNf4)
        out.notes.emplace_back(
            "The adapter is in the model as NF4 holds it, beside which it was trained.");
    if (report.count.elements > 0)
        out.facts.push_back(fmt::format("{:.1f} % of the {} weights that the adapter changes are "
                                        "the same in bf16 as before",
            100.0 * static_cast<double>(report.count.unchanged) /
                static_cast<double>(report.count.elements),
            report.count.elements));
    return out;
}

ExportOutcome outcomeOf(const ExportOrder& order, AdapterReport report, std::string type)
{
    ExportOutcome out{order.out, report.bytes, std::move(type), {}, {}, std::move(report.notes)};
    out.facts.push_back(
        fmt::format("the adapter changes {} modules of {}; it was read back and is equal",
            report.modules, report.base));
    return out;
}

Result<ExportOutcome> writePeft(const ExportOrder& order, const WriteProgress& progress)
{
    const ExportType type = parseExportType(order.type).value_or(ExportType::F32);
    MR_ASSIGN(const ModelPlace place, modelPlaceOf(order.model, order.adapter));
    MR_ASSIGN(AdapterReport report, exportPeft(place, order.out, type, progress));
    return outcomeOf(order, std::move(report), std::string(name(type)));
}

Result<ExportOutcome> writeGgufAdapter(const ExportOrder& order, const WriteProgress& progress)
{
    MR_ASSIGN(const ModelPlace place, modelPlaceOf(order.model, order.adapter));
    MR_ASSIGN(AdapterReport report, exportGgufAdapter(place, order.out, progress));
    return outcomeOf(order, std::move(report), "f32");
}

std::vector<std::string> factsOf(const GgufOutcome& done)
{
    std::vector<std::string> facts;
    for (const auto& [type, error] : done.report.errors)
        facts.push_back(fmt::format("{}: {} weights, read back {}", type, error.weights,
            error.largest == 0.0 ? std::string("equal")
                                 : fmt::format("with an error of {:.2g} of their size, {:.2g} at "
                                               "most",
                                       error.relative, error.largest)));
    if (done.verdict) {
        const ExportVerdict& v = *done.verdict;
        facts.push_back(fmt::format(
            "asked in {}: {} of {} texts become the same tokens; in {} answers {:.1f} % of "
            "{} tokens agree, mean KL {:.2g}",
            name(done.askedIn), v.sameTexts, v.texts, v.prompts, 100.0 * v.agreement(), v.tokens,
            v.divergence));
    }
    return facts;
}

GgufRequest requestOf(const ExportOrder& order, const WriteProgress& progress)
{
    GgufRequest request;
    request.model = order.model;
    request.adapter = order.adapter;
    request.out = order.out;
    request.form = parseGgufForm(order.type);
    request.original = order.original;
    request.asks = order.asks;
    request.device = order.device;
    request.threads = order.threads;
    request.progress = progress;
    return request;
}

ExportOutcome outcomeOf(const GgufOutcome& done)
{
    return {done.file.string(), done.report.bytes, std::string(ggufFormName(done.report.form)),
        factsOf(done), done.faults, done.report.notes};
}

// The server is asked before the work, as it may have a model of that name.
Result<ExportOutcome> writeOllama(const ExportOrder& order, const WriteProgress& progress)
{
    std::unique_ptr<OllamaServer> server;
    if (!order.ollamaName.empty()) {
        MR_ASSIGN(server, OllamaServer::open(processEnvironment()));
        MR_TRY(server->checkFree(order.ollamaName));
    }
    MR_ASSIGN(const OllamaOutcome done, writeOllamaFolder(requestOf(order, progress)));
    ExportOutcome out = outcomeOf(done.file);
    if (!server || !out.passed())
        return out;
    const Status made = server->create(order.ollamaName, done.weights, done.modelfile, progress);
    if (made.ok())
        out.ollamaName = order.ollamaName;
    else
        out.notCreated = made.kind() == ErrorKind::Cancelled ? "it was stopped" : made.message();
    return out;
}

Result<ExportOutcome> writeJob(const ExportOrder& order, const WriteProgress& progress)
{
    MR_ASSIGN(JobReport report, exportJob(order.model, order.out, progress));
    ExportOutcome out{order.out, 0, "fp32", {}, {}, std::move(report.notes)};
    out.facts.push_back(fmt::format("the run goes on from step {} to {}, with {} rows",
        report.fromStep, report.steps, report.rows));
    return out;
}

Result<ExportOutcome> writeForm(const ExportOrder& order, const WriteProgress& progress)
{
    switch (order.form) {
    case ExportForm::Safetensors:
    case ExportForm::Merged:
        return writeFolder(order, progress);
    case ExportForm::Peft:
        return writePeft(order, progress);
    case ExportForm::GgufAdapter:
        return writeGgufAdapter(order, progress);
    case ExportForm::Torchrun:
        return writeJob(order, progress);
    case ExportForm::Ollama:
        return writeOllama(order, progress);
    case ExportForm::Gguf:
        break;
    }
    MR_ASSIGN(const GgufOutcome done, writeCheckedGguf(requestOf(order, progress)));
    return outcomeOf(done);
}

} // namespace

Result<ExportOutcome> writeExport(const ExportOrder& order, const ExportProgress& watch)
{
    MR_TRY(checkOrder(order));
    const WriteProgress progress = [&watch](std::uint64_t done, std::uint64_t all) -> Status {
        if (!watch || watch(done, all))
            return {};
        return Status::error(ErrorKind::Cancelled, "stopped; nothing was left behind");
    };
    MR_ASSIGN(ExportOutcome done, writeForm(order, progress));
    if (const Status entered = recordExport(order, done); !entered.ok())
        done.notes.push_back("The history has no entry of this export: " + entered.message());
    return done;
}

} // namespace mr::app
