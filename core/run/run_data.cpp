#include "core/run/run_data.h"

#include "core/base/whole_file.h"
#include "core/choose/run_setup.h"
#include "core/data/chat_templates.h"
#include "core/data/token_set_builder.h"
#include "core/model/weights.h"
#include "core/run/eval_split.h"
#include "core/save/run_files.h"

#include <millrace/planner.h>

#include <xxhash.h>

#include <array>
#include <cinttypes>
#include <cstdio>
#include <memory>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

namespace mr {

std::string modelFolder(const RunSpec& spec)
{
    return spec.modelDir.empty() ? spec.scratchTokenizer : spec.modelDir;
}

RunSpec withStyle(RunSpec spec, RowStyle style)
{
    for (auto* sources : {&spec.data, &spec.evalData})
        for (DataSource& source : *sources)
            settleStyle(source, style);
    return spec;
}

Result<RunSpec> withTemplateText(RunSpec spec)
{
    for (auto* sources : {&spec.data, &spec.evalData})
        for (DataSource& source : *sources)
            MR_TRY(settleTemplate(source));
    return spec;
}

namespace {

// Finds the chat template that the trained model is saved with.
Status findTemplate(const RunSpec& spec, RunData& data)
{
    TokenSetOptions options;
    MR_TRY(takeTemplate(spec.data, options));
    if (options.chatTemplate.empty())
        return {};
    MR_ASSIGN(data.chatTemplate, templateText(options.chatTemplate, *data.tokenizer));
    return {};
}

Result<TokenSet> tokens(
    const std::vector<DataSource>& sources, const Tokenizer& tokenizer, const RunSpec& spec)
{
    TokenSetOptions options;
    options.seqLen = spec.seqLen;
    options.split = spec.split;
    options.modelFolder = modelFolder(spec);
    MR_TRY(takeTemplate(spec.data, options));
    return buildTokenSet(sources, tokenizer, options);
}

// Nothing of a set that is not packed.
template <typename Add>
void addRows(const PackedRows& rows, Add add)
{
    for (std::int64_t i = 0; i < rows.count(); ++i) {
        const std::array<std::uint64_t, 1> size{rows.row(i).size()};
        add(size);
        add(rows.row(i));
    }
}

Result<std::unique_ptr<Tokenizer>> tokenizerOf(const RunSpec& spec, std::int64_t vocab)
{
    MR_TRY(checkCarriedFiles(modelFolder(spec)));
    return Tokenizer::openFor(modelFolder(spec), vocab);
}

// Given, or held out of the training set.
Status findEvalSet(const RunSpec& spec, RunData& data)
{
    if (!spec.evalData.empty()) {
        auto eval = tokens(spec.evalData, *data.tokenizer, spec);
        MR_TRY(eval.status());
        data.eval = std::move(eval).value();
    } else if (const auto held = holdOutCount(data.train.count(), spec.holdOut); held > 0) {
        MR_ASSIGN(auto parts, holdOut(data.train, held));
        std::tie(data.train, data.eval) = std::move(parts);
    }
    return {};
}

// Packs where that is asked for, and where it would save much, to say so.
void packRows(const RunSpec& spec, RunData& data)
{
    TokenSet& train = data.train;
    DataReport& r = data.report;
    r.rows = static_cast<std::int64_t>(train.rows);
    r.cutRows = static_cast<std::int64_t>(train.cutRows);
    r.emptyRows = static_cast<std::int64_t>(train.emptyRows);
    r.promptRows = static_cast<std::int64_t>(train.promptRows);
    r.answers = static_cast<std::int64_t>(train.answers);
    r.emptyThoughts = static_cast<std::int64_t>(train.emptyThoughts);
    r.unreadSwitches = static_cast<std::int64_t>(train.unreadSwitches);
    for (const TokenSet* set : {&data.train, &data.eval})
        if (set->badRows) {
            for (const auto& [reason, rows] : set->badRows->skipped())
                r.rowsSkipped[reason] += rows;
            r.rowsExcluded += set->badRows->excluded();
        }
    r.sequences = train.count();
    r.evalSequences = data.eval.count();
    r.inputs = static_cast<std::int64_t>(train.sequences.tokens()) - r.sequences;
    r.seqLen = spec.seqLen;
    r.pack = spec.pack;
    if (!spec.pack && !isMostlyPadded(paddingShare(r.inputs, r.sequences, r.seqLen)))
        return;
    PackedRows packed = PackedRows::pack(train.sequences, spec.seqLen);
    r.packedRows = packed.count();
    if (spec.pack)
        train.packing = std::move(packed);
}

} // namespace

Result<RunData> readRunData(const RunSpec& spec, std::int64_t vocab)
{
    RunData data;
    auto tokenizer = tokenizerOf(spec, vocab);
    MR_TRY(tokenizer.status());
    data.tokenizer = std::move(tokenizer).value();
    auto train = tokens(spec.data, *data.tokenizer, spec);
    MR_TRY(train.status());
    data.train = std::move(train).value();
    data.report.layout = data.train.layout;
    data.report.mapping = data.train.mapping;
    data.report.unusedColumns = data.train.unusedColumns;
    if (const std::string_view note = data.tokenizer->note(); !note.empty())
        data.report.notes.emplace_back(note);
    MR_TRY(findTemplate(spec, data));
    MR_TRY(findEvalSet(spec, data));
    if (data.train.count() == 0 || data.train.trainedTokens == 0)
        return Status::error(ErrorKind::InvalidArgument,
            datasetPath(spec) + ": has no token to train on; look at it with `millrace inspect`");
    packRows(spec, data);
    return data;
}

Result<DataReport> inspectRunData(const RunSpec& spec)
{
    MR_ASSIGN(auto setup, setUpRun(spec, 0));
    MR_ASSIGN(auto data, readRunData(setup.spec, setup.config.vocab));
    return data.report;
}

Status writeSkippedRows(const RunData& data, const std::filesystem::path& runDir)
{
    if (data.report.rowsSkipped.empty() && data.report.rowsExcluded == 0)
        return {};
    MR_ASSIGN(auto file, WholeFile::create(runDir / "skipped.jsonl"));
    for (const TokenSet* set : {&data.train, &data.eval})
        if (set->badRows)
            MR_TRY(set->badRows->readLog(
                [&](std::span<const std::byte> lines) { return file.write(lines); }));
    return file.commit();
}

Result<std::string> dataHash(const TokenSet& set)
{
    const std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> state(
        XXH3_createState(), &XXH3_freeState);
    const auto add = [&state](const auto& values) {
        const auto bytes = std::as_bytes(std::span(values));
        (void)XXH3_64bits_update(state.get(), bytes.data(), bytes.size());
    };
    // All tokens, then all flags, then where sequences begin, each seeded by the hash before.
    XXH64_hash_t hash = 0;
    TokenSequence sequence;
    for (const bool flags : {false, true}) {
        (void)XXH3_64bits_reset_withSeed(state.get(), hash);
        for (std::int64_t i = 0; i < set.count(); ++i) {
            MR_TRY(set.sequences.read(i, sequence));
            flags ? add(sequence.trained) : add(sequence.tokens);
        }
        hash = XXH3_64bits_digest(state.get());
    }
    (void)XXH3_64bits_reset_withSeed(state.get(), hash);
    std::array<std::uint64_t, 1> start{};
    add(start);
    for (std::int64_t i = 0; i < set.count(); ++i) {
        start[0] += set.sequences.length(i);
        add(start);
    }
    addRows(set.packing, add);
    hash = XXH3_64bits_digest(state.get());
    std::array<char, 17> text{};
    (void)std::snprintf(text.data(), text.size(), "%016" PRIx64, hash);
    return std::string(text.data());
}

} // namespace mr
