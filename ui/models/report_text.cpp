#include "models/report_text.h"

#include "text/units.h"

#include <QJsonDocument>
#include <QSysInfo>
#include <QTextStream>

#include <array>

namespace mr::ui {

namespace {

QString gib(std::uint64_t bytes)
{
    return QString::number(static_cast<double>(bytes) / kGiB, 'f', 1) + QStringLiteral(" GiB");
}

QString text(const std::string& utf8)
{
    return QString::fromStdString(utf8);
}

QString indented(const std::string& json)
{
    const auto document = QJsonDocument::fromJson(QByteArray::fromStdString(json));
    return document.isNull() ? text(json) : QString::fromUtf8(document.toJson());
}

void writeMachine(QTextStream& out, const MachineInfo& machine)
{
    out << "\n== Machine ==\n"
        << text(machine.cpuName) << ", " << text(machine.instructionSet) << ", "
        << machine.physicalCores << " cores, " << machine.threads << " threads\n"
        << "memory " << gib(machine.memoryBytes) << ", free " << gib(machine.availableBytes)
        << "; disk of the runs, free " << gib(machine.diskFreeBytes) << '\n';
    for (const GpuInfo& gpu : machine.gpus)
        out << "GPU " << text(gpu.name) << ", " << gib(gpu.memoryBytes) << ' ' << text(gpu.note)
            << '\n';
}

void writeEvents(QTextStream& out, const std::vector<EventRow>& events)
{
    static constexpr std::array<const char*, 3> kLevels = {"info", "warning", "error"};
    out << "-- events\n";
    for (const EventRow& event : events)
        out << kLevels.at(static_cast<std::size_t>(event.level)) << ", step " << event.step << ", "
            << event.timeMs << " ms, " << text(event.code) << ": " << text(event.text) << '\n';
}

void writeAnswers(QTextStream& out, const std::vector<AnswerRow>& answers)
{
    out << "-- prompts and answers\n";
    for (const AnswerRow& row : answers)
        out << "step " << row.step << "\nsystem: " << text(row.prompt.system)
            << "\nprompt: " << text(row.prompt.text) << "\nanswer: " << text(row.answer.text)
            << '\n';
}

void writeRun(QTextStream& out, const ReportParts& parts, ReportDetail detail)
{
    out << "\n== Last run ==\n";
    if (!parts.run) {
        out << (parts.problem.isEmpty() ? QStringLiteral("none") : parts.problem) << '\n';
        return;
    }
    const RunRow& run = *parts.run;
    out << "run " << run.id << ", " << text(std::string(name(run.status))) << ", step "
        << run.lastStep << " of " << run.totalSteps << ", engine " << text(run.engineVersion)
        << '\n'
        << "reason: " << text(run.exitReason) << '\n'
        << "folder: " << text(run.dir) << '\n';
    out << "-- asked for\n" << (run.askedJson.empty() ? QString() : indented(run.askedJson));
    out << "-- chosen\n" << indented(run.configJson) << "-- plan\n" << indented(run.planJson);
    writeEvents(out, parts.events);
    if (detail == ReportDetail::WithoutTexts)
        return;
    if (!run.notes.empty())
        out << "-- notes\n" << text(run.notes) << '\n';
    writeAnswers(out, parts.answers);
}

} // namespace

QString reportText(const ReportParts& parts, ReportDetail detail)
{
    QString report;
    QTextStream out(&report);
    out << "== Program ==\n"
        << parts.program << ", Qt " << qVersion() << '\n'
        << QSysInfo::prettyProductName() << ", " << QSysInfo::kernelType() << ' '
        << QSysInfo::kernelVersion() << ", " << QSysInfo::currentCpuArchitecture() << '\n';
    writeMachine(out, parts.machine);
    writeRun(out, parts, detail);
    out << "\n== Log ==\n" << parts.log;
    return report;
}

} // namespace mr::ui
