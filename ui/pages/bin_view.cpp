#include "pages/bin_view.h"

#include "models/run_table_model.h"
#include "pages/run_list.h"
#include "text/units.h"
#include "widgets/card.h"

#include <QHBoxLayout>
#include <QLabel>
#include <QMenu>
#include <QMessageBox>
#include <QPushButton>
#include <QVBoxLayout>

namespace mr::ui {

namespace {

constexpr qsizetype kNamesSaid = 3;

} // namespace

BinView::BinView(QWidget* parent)
    : QWidget(parent)
    , m_list(new RunList(RunList::Place::Bin))
    , m_hint(makeMutedLabel())
    , m_restore(new QPushButton(tr("Restore")))
    , m_erase(new QPushButton(tr("Delete for good…")))
    , m_back(new QPushButton(tr("Back to the runs")))
{
    m_list->setAccessibleName(tr("Deleted runs"));
    m_hint->setText(tr("Deleted runs can be restored for 30 days; then the history forgets them. "
                       "Their files stay until they are deleted for good."));
    m_restore->setObjectName(QStringLiteral("binRestore"));
    m_erase->setObjectName(QStringLiteral("binErase"));
    auto* bar = new QHBoxLayout;
    bar->addWidget(m_hint, 1);
    bar->addSpacing(8);
    for (QPushButton* button : {m_restore, m_erase, m_back})
        bar->addWidget(button);
    auto* layout = new QVBoxLayout(this);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->addLayout(bar);
    layout->addWidget(m_list, 1);
    const auto restore = [this] { emit restoreRequested(m_list->selectedIds()); };
    const auto erase = [this] {
        if (m_erase->isEnabled())
            emit eraseRequested(m_list->selectedIds());
    };
    connect(m_restore, &QPushButton::clicked, this, restore);
    connect(m_erase, &QPushButton::clicked, this, erase);
    connect(m_back, &QPushButton::clicked, this, &BinView::closed);
    connect(m_list->selectionModel(), &QItemSelectionModel::selectionChanged, this,
        &BinView::updateState);
    connect(m_list, &QWidget::customContextMenuRequested, this, [this, restore, erase](QPoint at) {
        QMenu menu(this);
        menu.addAction(m_restore->text(), this, restore)->setEnabled(m_restore->isEnabled());
        menu.addAction(m_erase->text(), this, erase)->setEnabled(m_erase->isEnabled());
        menu.exec(m_list->viewport()->mapToGlobal(at));
    });
    m_list->addKey(QKeySequence::Delete, erase);
    m_list->addKey(Qt::Key_Escape, [this] { emit closed(); });
    updateState();
}

void BinView::setRuns(const RunRowsPtr& runs)
{
    m_list->setRuns(runs);
    updateState();
}

void BinView::updateState()
{
    const bool any = m_list->selectionModel()->hasSelection();
    m_restore->setEnabled(any);
    m_erase->setEnabled(any);
}

void BinView::askToErase(const std::vector<std::int64_t>& runs, const RunFiles& files)
{
    const QString bytes = memoryText(static_cast<double>(files.bytes));
    QString detail = files.bytes == 0
                         ? tr("There are no files of it on the disk any more.")
                         : tr("Checkpoints, models and records in %n folder(s) go with it.",
                               nullptr, static_cast<int>(files.folders.size()));
    if (!files.neededBy.empty()) {
        QStringList names;
        for (const std::string& name : files.neededBy)
            names << QString::fromStdString(name);
        if (names.size() > kNamesSaid)
            names = names.first(kNamesSaid) << QStringLiteral("…");
        detail += QLatin1Char('\n') +
                  tr("Other runs were trained from it: %1.").arg(names.join(QStringLiteral(", ")));
    }
    detail += QLatin1Char('\n') + tr("This cannot be undone.");
    auto* box = new QMessageBox(QMessageBox::Warning, QStringLiteral("Millrace"),
        tr("Delete %n run(s) for good?", nullptr, static_cast<int>(runs.size())),
        QMessageBox::NoButton, this);
    box->setObjectName(QStringLiteral("eraseQuestion"));
    box->setAttribute(Qt::WA_DeleteOnClose);
    box->setInformativeText(detail);
    auto* yes = box->addButton(
        files.bytes == 0 ? tr("Delete") : tr("Delete %1").arg(bytes), QMessageBox::DestructiveRole);
    auto* no = box->addButton(tr("Cancel"), QMessageBox::RejectRole);
    box->setDefaultButton(no);
    box->setEscapeButton(no);
    connect(box, &QMessageBox::buttonClicked, this,
        [this, yes, runs, bytes = files.bytes](QAbstractButton* clicked) {
            if (clicked == yes)
                emit eraseConfirmed(runs, bytes);
        });
    box->open();
}

} // namespace mr::ui
