#include "models/run_command.h"

#include <QLocale>
#include <QStringList>

#include <algorithm>
#include <string>
#include <string_view>

namespace mr::ui {

namespace {

QString quoted(const std::string& text)
{
    QString value = QString::fromStdString(text);
    const auto plain = [](QChar c) {
        return c.isLetterOrNumber() || QStringLiteral("/._-+=:,@%").contains(c);
    };
    if (!value.isEmpty() && std::all_of(value.begin(), value.end(), plain))
        return value;
    QString escaped = value;
    escaped.replace(QLatin1Char('\''), QLatin1String("'\\''"));
    return QLatin1Char('\'') + escaped + QLatin1Char('\'');
}

class Command
{
public:
    void text(const char* option, const std::string& value)
    {
        m_words << QLatin1String(option) << quoted(value);
    }

    void word(const char* option, std::string_view value) { text(option, std::string(value)); }

    void flag(const char* option) { m_words << QLatin1String(option); }

    void integer(const char* option, std::int64_t value, std::int64_t usual)
    {
        if (value != usual)
            m_words << QLatin1String(option) << QString::number(value);
    }

    void number(const char* option, double value, double usual)
    {
        if (value != usual)
            m_words << QLatin1String(option)
                    << QLocale::c().toString(value, 'g', QLocale::FloatingPointShortest);
    }

    void bytes(const char* option, std::uint64_t value)
    {
        if (value != 0)
            m_words << QLatin1String(option) << QString::number(value);
    }

    QString line() const { return m_words.join(QLatin1Char(' ')); }

private:
    QStringList m_words;
};

void addData(Command& command, const char* option, const std::vector<DataSource>& sources)
{
    for (const DataSource& source : sources)
        command.text(option, source.path);
}

void addMap(Command& command, const RunSpec& spec)
{
    if (spec.data.empty() || spec.data.front().columns.empty())
        return;
    std::string map;
    for (const auto& [role, column] : spec.data.front().columns) {
        if (role == "style") {
            command.text("--pairs", column);
            continue;
        }
        if (role == "chat_template") {
            command.text("--chat-template", column);
            continue;
        }
        map += map.empty() ? "" : ",";
        map += role;
        map += '=';
        map += column;
    }
    if (!map.empty())
        command.text("--map", map);
}

void addOptimizer(Command& command, const RunSpec& spec, const RunSpec& usual)
{
    command.number("--lr", spec.learningRate, usual.learningRate);
    if (spec.schedule != usual.schedule)
        command.word("--schedule", name(spec.schedule));
    command.integer("--warmup", spec.warmupSteps, usual.warmupSteps);
    command.number("--weight-decay", spec.weightDecay, usual.weightDecay);
    command.number("--beta1", spec.beta1, usual.beta1);
    command.number("--beta2", spec.beta2, usual.beta2);
    command.number("--eps", spec.eps, usual.eps);
    command.number("--clip", spec.clipNorm, usual.clipNorm);
}

std::string rate(double bytesPerSecond)
{
    const double giga = bytesPerSecond / 1e9;
    const bool isExact = giga * 1e9 == bytesPerSecond;
    return QLocale::c()
               .toString(isExact ? giga : bytesPerSecond, 'g', QLocale::FloatingPointShortest)
               .toStdString() +
           (isExact ? "GB/s" : "B/s");
}

void addMachine(Command& command, const RunSpec& spec, const RunSpec& usual)
{
    if (spec.device != usual.device)
        command.word("--device", name(spec.device));
    if (spec.threadedDevice)
        command.flag("--threaded-device");
    command.integer("--threads", spec.threads, usual.threads);
    if (spec.policy != usual.policy)
        command.text("--policy", spec.policy);
    if (spec.allowStale)
        command.text("--allow", "stale");
    for (const auto& [key, value] : spec.policyOptions)
        command.text("--policy-option", std::string(key).append("=").append(value));
    command.bytes("--device-memory", spec.deviceMemoryBytes);
    command.bytes("--host-memory", spec.hostMemoryBytes);
    command.bytes("--disk-space", spec.diskBytes);
    for (const std::string& folder : spec.diskPaths)
        command.text("--disk-path", folder);
    command.bytes("--max-disk-writes", spec.maxDiskWriteBytes);
    if (spec.linkBytesPerSecond > 0.0)
        command.text("--link", rate(spec.linkBytesPerSecond));
}

void addModel(Command& command, const RunSpec& spec)
{
    if (!spec.modelDir.empty())
        command.text("--model", spec.modelDir);
    if (!spec.scratchConfig.empty())
        command.text("--from-scratch", spec.scratchConfig);
    if (!spec.scratchTokenizer.empty())
        command.text("--tokenizer", spec.scratchTokenizer);
}

void addSources(Command& command, const RunSpec& spec, const RunSpec& usual)
{
    addData(command, "--data", spec.data);
    if (!spec.data.empty() && spec.data.front().format != DataFormat::Auto)
        command.word("--format", name(spec.data.front().format));
    addMap(command, spec);
    const auto skips = [](const DataSource& source) { return source.skipBadRows; };
    if (std::any_of(spec.data.begin(), spec.data.end(), skips))
        command.flag("--skip-bad-rows");
    if (!spec.split.empty())
        command.text("--split", spec.split);
    if (spec.pack)
        command.flag("--pack");
    addData(command, "--eval-data", spec.evalData);
    command.number("--hold-out", spec.holdOut, usual.holdOut);
}

void addSaving(Command& command, const RunSpec& spec, const RunSpec& usual)
{
    command.integer("--eval-every", spec.evalEvery, usual.evalEvery);
    command.integer("--eval-answers", spec.evalAnswers, usual.evalAnswers);
    command.integer("--checkpoint-every", spec.checkpointEvery, usual.checkpointEvery);
    command.integer("--checkpoint-minutes", spec.checkpointMinutes, usual.checkpointMinutes);
    command.integer("--keep", spec.keepCheckpoints, usual.keepCheckpoints);
    if (spec.keepBest)
        command.flag("--keep-best");
}

QString options(const RunSpec& spec)
{
    const RunSpec usual;
    Command command;
    addModel(command, spec);
    addSources(command, spec, usual);
    if (!spec.name.empty())
        command.text("--name", spec.name);
    if (!spec.outDir.empty())
        command.text("--out", spec.outDir);
    command.integer("--steps", spec.steps, usual.steps);
    if (spec.steps == 0)
        command.number("--epochs", spec.epochs, usual.epochs);
    command.integer("--seq-len", spec.seqLen, usual.seqLen);
    command.integer("--micro-batch", spec.microBatch, usual.microBatch);
    command.integer("--accumulate", spec.accumulate, usual.accumulate);
    addOptimizer(command, spec, usual);
    if (spec.seed != usual.seed)
        command.text("--seed", std::to_string(spec.seed));
    if (spec.precision != usual.precision)
        command.word("--precision", name(spec.precision));
    if (spec.method != usual.method)
        command.text("--method", spec.method);
    if (spec.recompute != usual.recompute)
        command.word("--recompute", name(spec.recompute));
    addSaving(command, spec, usual);
    addMachine(command, spec, usual);
    return command.line();
}

} // namespace

QString trainCommand(const RunSpec& spec)
{
    return QStringLiteral("millrace train ") + options(spec);
}

QString keptSettings(const RunSpec& spec)
{
    RunSpec kept;
    if (spec.data.size() > 1)
        kept.data.assign(spec.data.begin() + 1, spec.data.end());
    if (spec.evalData.size() > 1)
        kept.evalData.assign(spec.evalData.begin() + 1, spec.evalData.end());
    for (DataSource& source : kept.data)
        source = {source.path, DataFormat::Auto, {}, source.skipBadRows};
    if (spec.modelDir.empty()) {
        kept.scratchConfig = spec.scratchConfig;
        kept.scratchTokenizer = spec.scratchTokenizer;
    }
    kept.holdOut = spec.holdOut;
    kept.split = spec.split;
    kept.evalAnswers = spec.evalAnswers;
    kept.eps = spec.eps;
    kept.method = spec.method;
    kept.threadedDevice = spec.threadedDevice;
    kept.policyOptions = spec.policyOptions;
    return options(kept);
}

} // namespace mr::ui
