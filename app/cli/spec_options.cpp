#include "app/cli/spec_options.h"

#include "app/cli/commands.h"
#include "core/plan/policies.h"

#include <utility>

namespace mr::app {
namespace {

// "auto, a (in plain words) or b (...); b needs --disk-path"
std::string policyHelp()
{
    std::string text = "auto";
    std::string needs;
    const std::vector<PolicyInfo>& table = policyTable();
    for (std::size_t i = 0; i < table.size(); ++i) {
        text.append(i + 1 == table.size() ? " or " : ", ").append(table[i].name);
        text.append(" (").append(table[i].plainName).append(")");
        if (table[i].usesDisk)
            needs.append("; ").append(table[i].name).append(" needs --disk-path");
    }
    return text + needs;
}

std::string takers(const OptionInfo& option)
{
    std::string names;
    for (const PolicyInfo& policy : policyTable())
        if (option.isTakenBy(policy.takes))
            names.append(names.empty() ? "" : ", ").append(policy.name);
    return option.takenBy == kAll ? "all policies" : names;
}

std::string optionHelp()
{
    std::string text = "key=value; may be repeated.";
    for (const OptionInfo& option : policyOptionTable())
        text.append("\n")
            .append(option.name)
            .append(" (")
            .append(takers(option))
            .append("): ")
            .append(option.want)
            .append("; ")
            .append(option.help);
    return text;
}

template <typename T>
Status take(Result<T> parsed, T& out)
{
    if (!parsed.ok())
        return parsed.status();
    out = std::move(parsed).value();
    return {};
}

Status takeBytes(const std::string& text, std::uint64_t& out)
{
    return text.empty() ? Status() : take(parseBytes(text), out);
}

} // namespace

void SpecOptions::addTo(CLI::App& command, bool needsData)
{
    addModelAndData(command, needsData);
    addTraining(command);
    addMachine(command);
}

void SpecOptions::addModelAndData(CLI::App& command, bool needsData)
{
    command.add_option("--model", m_spec.modelDir, "Model folder (Hugging Face layout)");
    command.add_option(
        "--from-scratch", m_spec.scratchConfig, "config.json of a model to initialise");
    command.add_option("--tokenizer", m_spec.scratchTokenizer, "Tokenizer of --from-scratch");
    auto* data = command.add_option("--data", m_data, "Dataset file; may be repeated");
    if (needsData)
        data->required();
    m_rows.addTo(command);
    command.add_option("--split", m_spec.split, "Text files: cut into documents at this string");
    command.add_flag("--pack", m_spec.pack,
        "Short sequences share rows of the micro-batches, each seeing itself alone: fewer steps an "
        "epoch, more sequences a step");
    command.add_option("--eval-data", m_evalData, "Evaluation file; may be repeated");
    command.add_option("--hold-out", m_spec.holdOut,
        "Share of the data held out for evaluation without --eval-data (0: none)");
    command.add_option("--eval-every", m_spec.evalEvery, "Steps between evaluations (0: never)");
    command.add_option("--eval-answers", m_spec.evalAnswers,
        "Evaluation pairs that are also answered and compared (0: none)");
    command.add_option("--out", m_spec.outDir, "Run folder: checkpoints, log, trained model");
    command.add_option("--db", m_spec.database, "History database");
    command.add_option("--name", m_spec.name, "Name of the run");
}

void SpecOptions::addTraining(CLI::App& command)
{
    command.add_option("--steps", m_spec.steps, "Optimizer steps (0: by epochs)");
    command.add_option("--epochs", m_spec.epochs, "Passes over the data");
    command.add_option("--seq-len", m_spec.seqLen, "Tokens of a sequence");
    command.add_option("--micro-batch", m_spec.microBatch, "Sequences computed at once");
    command.add_option("--accumulate", m_spec.accumulate, "Micro-batches of one optimizer step");
    command.add_option("--lr", m_spec.learningRate, "Peak learning rate");
    command.add_option("--schedule", m_schedule, "constant, linear or cosine");
    command.add_option("--warmup", m_spec.warmupSteps, "Warm-up steps");
    command.add_option("--weight-decay", m_spec.weightDecay, "AdamW weight decay");
    command.add_option("--beta1", m_spec.beta1, "AdamW beta1");
    command.add_option("--beta2", m_spec.beta2, "AdamW beta2");
    command.add_option("--eps", m_spec.eps, "AdamW epsilon");
    command.add_option("--clip", m_spec.clipNorm, "Gradient norm limit (0: off)");
    command.add_option("--seed", m_spec.seed, "Seed");
    command.add_option("--precision", m_precision, "bf16 or fp32");
    command.add_option("--method", m_spec.method, "full");
    command.add_option("--recompute", m_recompute, "none or block");
    command.add_option("--checkpoint-every", m_spec.checkpointEvery,
        "Steps between checkpoints (0: not by steps); there is one at the end in any case");
    command.add_option("--checkpoint-minutes", m_spec.checkpointMinutes,
        "Minutes after which a checkpoint follows the last one (0: not by time)");
    command.add_option("--keep", m_spec.keepCheckpoints,
        "Newest checkpoints to keep; the best by evaluation loss is kept, too");
    command.add_flag("--keep-best", m_spec.keepBest,
        "Make a checkpoint whenever an evaluation is the best so far, not only where both fall on "
        "one step");
}

void SpecOptions::addMachine(CLI::App& command)
{
    command.add_option("--device", m_device, "auto, cpu or cuda");
    command.add_flag("--threaded-device", m_spec.threadedDevice,
        "CPU device: every stream is a thread of its own, as on a GPU");
    command.add_option("--threads", m_spec.threads, "Compute threads");
    command.add_option("--policy", m_spec.policy, policyHelp());
    command.add_option("--allow", m_allow,
        "auto: exact policies only (exact), or also those whose updates lag some steps (stale)");
    command.add_option("--policy-option", m_policyOptions, optionHelp());
    command.add_option("--device-memory", m_deviceMemory, "Budget, as 6GiB");
    command.add_option("--host-memory", m_hostMemory, "Budget, as 24GiB");
    command.add_option("--disk-space", m_diskSpace, "Budget in all --disk-path together, as 200GB");
    command.add_option("--disk-path", m_spec.diskPaths,
        "Folder on an SSD, for policies that keep state there; may be repeated: drives work side "
        "by side");
    command.add_option("--max-disk-writes", m_maxDiskWrites,
        "Most that the run may write to disk, as 100TB; a run that would write more is refused");
    command.add_option("--link", m_link,
        "CPU device: slows copies down to this rate, as 12GB/s (results are a simulated link)");
}

Result<RunSpec> SpecOptions::spec() const
{
    RunSpec spec = m_spec;
    MR_TRY(readSources(spec));
    MR_TRY(readWords(spec));
    MR_TRY(readSizes(spec));
    MR_TRY(checkSpec(spec));
    return spec;
}

Status SpecOptions::readSources(RunSpec& spec) const
{
    MR_TRY(requireFiles(m_data, "--data"));
    MR_TRY(requireFiles(m_evalData, "--eval-data"));
    for (const auto& [paths, sources] :
        {std::pair{&m_data, &spec.data}, std::pair{&m_evalData, &spec.evalData}})
        for (const std::string& path : *paths) {
            auto source = m_rows.source(path);
            MR_TRY(source.status());
            sources->push_back(std::move(source).value());
        }
    return {};
}

Status SpecOptions::readWords(RunSpec& spec) const
{
    MR_TRY(take(parseSchedule(m_schedule), spec.schedule));
    MR_TRY(take(parsePrecision(m_precision), spec.precision));
    MR_TRY(take(parseRecompute(m_recompute), spec.recompute));
    MR_TRY(take(parseDevice(m_device), spec.device));
    if (m_allow != "exact" && m_allow != "stale")
        return Status::error(
            ErrorKind::InvalidArgument, "--allow '" + m_allow + "': want exact or stale");
    spec.allowStale = m_allow == "stale";
    for (const std::string& option : m_policyOptions)
        MR_TRY(readPairs(option, "--policy-option", spec.policyOptions));
    return {};
}

Status SpecOptions::readSizes(RunSpec& spec) const
{
    MR_TRY(takeBytes(m_deviceMemory, spec.deviceMemoryBytes));
    MR_TRY(takeBytes(m_hostMemory, spec.hostMemoryBytes));
    MR_TRY(takeBytes(m_diskSpace, spec.diskBytes));
    MR_TRY(takeBytes(m_maxDiskWrites, spec.maxDiskWriteBytes));
    return m_link.empty() ? Status() : take(parseRate(m_link), spec.linkBytesPerSecond);
}

} // namespace mr::app
