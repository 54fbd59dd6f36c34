// The New run page as a RunSpec: its editors written and read.

#include "pages/dataset_section.h"
#include "pages/method_section.h"
#include "pages/model_section.h"
#include "pages/new_run_page.h"
#include "pages/scratch_section.h"
#include "pages/settings_form.h"
#include "widgets/message_label.h"
#include "widgets/path_edit.h"

#include <QLineEdit>

#include <algorithm>

namespace mr::ui {

RunSpec NewRunPage::shown() const
{
    RunSpec spec;
    m_method->writeTo(spec);
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

RunDraft NewRunPage::draft() const
{
    RunDraft draft = m_draft;
    draft.edit(shown(), m_settings->secondPolicy());
    return draft;
}

void NewRunPage::setSpec(const RunSpec& spec)
{
    m_method->readFrom(spec);
    m_settings->readFrom(spec);
    m_scratch->readFrom(spec);
    m_model->setPath(QString::fromStdString(spec.modelDir));
    m_dataset->setSource(spec.data.empty() ? DataSource() : spec.data.front());
    m_dataset->setEvalPath(
        spec.evalData.empty() ? QString() : QString::fromStdString(spec.evalData.front().path));
    m_dataset->setPack(spec.pack);
    m_name->setText(QString::fromStdString(spec.name));
    m_folder->setPath(QString::fromStdString(spec.outDir));
    m_draft.fill(spec, shown());
    inputChanged();
}

void NewRunPage::takeLighter(const LighterWay& way)
{
    setSpec(withLighterWay(spec(), way));
}

// Length that rows are cut to: chosen, or as RunSpec::seqLen says of 0.
std::int64_t NewRunPage::dataSeqLen() const
{
    const std::int64_t chosen = m_settings->seqLen();
    if (chosen > 0 || !m_model->info())
        return chosen;
    return std::max<std::int64_t>(1, defaultSeqLen(m_model->info()->maxPositions));
}

void NewRunPage::showKept()
{
    const QString kept = draft().kept();
    if (kept.isEmpty())
        m_kept->clear();
    else
        m_kept->show(MessageLabel::Kind::Info, tr("Also set for this run: %1").arg(kept));
}

} // namespace mr::ui
