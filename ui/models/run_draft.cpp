#include "models/run_draft.h"

#include "models/run_command.h"

#include <millrace/spec_fields.h>

#include <QFileInfo>
#include <QStringList>

namespace mr::ui {

namespace {

RunSpec under(RunSpec spec, const std::string& policy)
{
    if (spec.policy != policy)
        spec.policyOptions.clear(); // they belong to the policy they were given for
    spec.policy = policy;
    spec.name += ": " + policy;
    if (!spec.outDir.empty())
        spec.outDir += "/" + policy;
    return spec;
}

} // namespace

std::vector<RunSpec> comparisonSpecs(const RunSpec& spec, const std::string& otherPolicy)
{
    return {under(spec, spec.policy), under(spec, otherPolicy)};
}

void RunDraft::fill(const RunSpec& given, const RunSpec& shown)
{
    m_given = given;
    if (m_given.database.empty())
        m_given.database = shown.database;
    m_shown = m_now = shown;
    m_secondPolicy.clear();
}

void RunDraft::edit(const RunSpec& now, const std::string& secondPolicy)
{
    m_now = now;
    m_secondPolicy = secondPolicy;
}

RunSpec RunDraft::spec() const
{
    RunSpec spec = edited(m_given, m_shown, m_now);
    if (m_now.method != m_shown.method || m_now.train != m_shown.train ||
        m_now.adapterDir != m_shown.adapterDir) {
        // An adapter that was given, and the layers of a method, go with them.
        takeAdapterOptions(m_now, spec);
        spec.trainLayers = m_now.trainLayers;
    }
    if (m_now.policy != m_shown.policy)
        spec.policyOptions.clear(); // they belong to the policy they were given for
    if (m_now.modelDir != m_shown.modelDir && !m_now.modelDir.empty())
        spec.scratchConfig = spec.scratchTokenizer = {};
    return spec;
}

std::vector<RunSpec> RunDraft::runs() const
{
    RunSpec wanted = spec();
    if (wanted.name.empty())
        wanted.name = suggestedName(QString::fromStdString(m_now.modelDir),
            m_now.data.empty() ? QString() : QString::fromStdString(m_now.data.front().path))
                          .toStdString();
    return m_secondPolicy.empty() ? std::vector<RunSpec>{wanted}
                                  : comparisonSpecs(wanted, m_secondPolicy);
}

QString RunDraft::commandLine() const
{
    // The names of two runs tell them apart; one is named if the user has named it.
    std::vector<RunSpec> shown = m_secondPolicy.empty() ? std::vector<RunSpec>{spec()} : runs();
    QStringList commands;
    for (RunSpec& run : shown) {
        run.database.clear();
        commands << trainCommand(run);
    }
    return commands.join(QStringLiteral(" &&\n"));
}

QString RunDraft::kept() const
{
    return keptSettings(spec());
}

QString RunDraft::suggestedName(const QString& model, const QString& dataset)
{
    const QString first = QFileInfo(model).fileName();
    const QString second = QFileInfo(dataset).completeBaseName();
    if (first.isEmpty() || second.isEmpty())
        return first + second;
    return first + QLatin1Char('-') + second;
}

} // namespace mr::ui
