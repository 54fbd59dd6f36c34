// The New run page as a RunSpec: what it shows, what it was filled with, and the command line of
// both.

#include "bridge/run_queue.h"
#include "pages/dataset_section.h"
#include "pages/model_section.h"
#include "pages/new_run_page.h"
#include "pages/run_command.h"
#include "pages/scratch_section.h"
#include "pages/settings_form.h"
#include "widgets/message_label.h"
#include "widgets/path_edit.h"

#include <QFileInfo>
#include <QLineEdit>

#include <algorithm>

namespace mr::ui {

RunSpec NewRunPage::shown() const
{
    RunSpec spec;
    m_settings->writeTo(spec);
    m_scratch->writeTo(spec);
    spec.pack = m_dataset->pack();
    spec.modelDir = m_model->path().toStdString();
    if (!m_dataset->path().isEmpty())
        spec.data = {m_dataset->source()};
    if (!m_dataset->evalPath().isEmpty()) {
        DataSource eval = m_dataset->source();
        eval.path = m_dataset->evalPath().toStdString();
        spec.evalData = {eval};
    }
    spec.name = m_name->text().trimmed().toStdString();
    spec.outDir = m_folder->path().toStdString();
    spec.database = m_services.database;
    return spec;
}

RunSpec NewRunPage::spec() const
{
    const RunSpec now = shown();
    RunSpec spec = edited(m_given, m_shown, now);
    if (now.policy != m_shown.policy)
        spec.policyOptions.clear(); // they belong to the policy they were given for
    if (now.modelDir != m_shown.modelDir && !now.modelDir.empty())
        spec.scratchConfig = spec.scratchTokenizer = {};
    return spec;
}

std::vector<RunSpec> NewRunPage::runs() const
{
    RunSpec wanted = spec();
    if (wanted.name.empty())
        wanted.name = suggestedName().toStdString();
    const std::string other = m_settings->secondPolicy();
    return other.empty() ? std::vector<RunSpec>{wanted} : comparisonSpecs(wanted, other);
}

void NewRunPage::setSpec(const RunSpec& spec)
{
    m_settings->readFrom(spec);
    m_scratch->readFrom(spec);
    m_model->setPath(QString::fromStdString(spec.modelDir));
    m_dataset->setSource(spec.data.empty() ? DataSource() : spec.data.front());
    m_dataset->setEvalPath(
        spec.evalData.empty() ? QString() : QString::fromStdString(spec.evalData.front().path));
    m_dataset->setPack(spec.pack);
    m_name->setText(QString::fromStdString(spec.name));
    m_folder->setPath(QString::fromStdString(spec.outDir));
    m_given = spec;
    if (m_given.database.empty())
        m_given.database = m_services.database;
    m_shown = shown();
    inputChanged();
}

QString NewRunPage::commandLine() const
{
    std::vector<RunSpec> shown = {spec()};
    if (!m_settings->secondPolicy().empty())
        shown = runs(); // their names tell them apart
    QStringList commands;
    for (RunSpec& run : shown) {
        run.database.clear();
        commands << trainCommand(run);
    }
    return commands.join(QStringLiteral(" &&\n"));
}

// What rows are cut to: chosen, or as RunSpec::seqLen says of 0.
std::int64_t NewRunPage::dataSeqLen() const
{
    const std::int64_t chosen = m_settings->seqLen();
    if (chosen > 0 || !m_model->info())
        return chosen;
    return std::max<std::int64_t>(1, defaultSeqLen(m_model->info()->maxPositions));
}

void NewRunPage::showKept()
{
    const QString kept = keptSettings(spec());
    if (kept.isEmpty())
        m_kept->clear();
    else
        m_kept->show(MessageLabel::Kind::Info, tr("Also set for this run: %1").arg(kept));
}

QString NewRunPage::suggestedName() const
{
    const QString model = QFileInfo(m_model->path()).fileName();
    const QString dataset = QFileInfo(m_dataset->path()).completeBaseName();
    if (model.isEmpty() || dataset.isEmpty())
        return model + dataset;
    return model + QLatin1Char('-') + dataset;
}

} // namespace mr::ui
