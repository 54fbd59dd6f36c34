#include "pages/try_column.h"

#include "text/svg_icon.h"
#include "text/units.h"
#include "widgets/card.h"
#include "widgets/message_label.h"

#include <QAbstractItemView>
#include <QComboBox>
#include <QEvent>
#include <QFileDialog>
#include <QFileInfo>
#include <QFontDatabase>
#include <QHBoxLayout>
#include <QLabel>
#include <QPlainTextEdit>
#include <QScrollBar>
#include <QSignalBlocker>
#include <QToolButton>
#include <QVBoxLayout>

#include <algorithm>

namespace mr::ui {

namespace {

constexpr int kReadLines = 6;
using State = TryProgress::State;

} // namespace

TryColumn::TryColumn(Side side, QWidget* parent)
    : QWidget(parent)
    , m_side(side)
    , m_card(new Card(this))
    , m_models(new QComboBox(m_card))
    , m_weights(new QComboBox(m_card))
    , m_folder(new QToolButton(m_card))
    , m_answer(new QPlainTextEdit(m_card))
    , m_figures(makeMutedLabel(m_card))
    , m_message(new MessageLabel(m_card))
    , m_fold(new QToolButton(m_card))
    , m_read(new QPlainTextEdit(m_card))
{
    build();
    connect(m_models, &QComboBox::currentIndexChanged, this, &TryColumn::onChosen);
    connect(m_weights, &QComboBox::currentIndexChanged, this, [this] {
        setProgress({}); // the answer was of other weights
        emit chosen();
    });
    connect(m_folder, &QToolButton::clicked, this, &TryColumn::askForFolder);
    connect(m_fold, &QToolButton::toggled, this, [this](bool open) {
        m_read->setVisible(open);
        m_fold->setIcon(
            svgIcon(open ? QStringLiteral("chevron-down") : QStringLiteral("chevron-right")));
    });
    retranslateUi();
    fill();
}

void TryColumn::build()
{
    m_models->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
    m_models->setMinimumContentsLength(12);
    m_weights->setSizeAdjustPolicy(QComboBox::AdjustToContents);
    m_folder->setIcon(svgIcon(QStringLiteral("folder")));
    m_answer->setReadOnly(true);
    m_answer->setTabChangesFocus(true);
    m_fold->setCheckable(true);
    m_fold->setAutoRaise(true);
    m_fold->setToolButtonStyle(Qt::ToolButtonTextBesideIcon);
    m_fold->setIcon(svgIcon(QStringLiteral("chevron-right")));
    m_read->setReadOnly(true);
    m_read->setTabChangesFocus(true);
    m_read->setFont(QFontDatabase::systemFont(QFontDatabase::FixedFont));
    m_read->setFixedHeight(m_read->fontMetrics().lineSpacing() * kReadLines + 12);
    m_read->hide();
    auto* row = new QHBoxLayout;
    row->addWidget(m_models, 1);
    row->addWidget(m_weights);
    row->addWidget(m_folder);
    m_card->body()->addLayout(row);
    m_card->body()->addWidget(m_answer, 1);
    m_card->body()->addWidget(m_message);
    m_card->body()->addWidget(m_figures);
    m_card->body()->addWidget(m_fold, 0, Qt::AlignLeft);
    m_card->body()->addWidget(m_read);
    auto* layout = new QVBoxLayout(this);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->addWidget(m_card);
}

void TryColumn::setChoices(const std::vector<TryChoice>& choices)
{
    if (choices == m_choices)
        return;
    m_choices = choices;
    fill();
}

void TryColumn::addFolder(const QString& folder)
{
    const TryChoice choice{QFileInfo(folder).fileName(), folder.toStdString(), 0, false};
    if (std::find(m_folders.begin(), m_folders.end(), choice) == m_folders.end())
        m_folders.push_back(choice);
    fill();
    const auto at = std::find(m_folders.begin(), m_folders.end(), choice) - m_folders.begin();
    m_models->setCurrentIndex(static_cast<int>(m_choices.size()) + static_cast<int>(at));
}

void TryColumn::choose(qint64 runId)
{
    const auto found = std::find_if(m_choices.begin(), m_choices.end(),
        [runId](const TryChoice& choice) { return choice.runId == runId; });
    if (found != m_choices.end())
        m_models->setCurrentIndex(static_cast<int>(found - m_choices.begin()));
}

// All entries again. A run that ended is the same choice as while it was going on.
void TryColumn::fill()
{
    const QVariant path = m_models->currentData(Qt::UserRole);
    const QVariant run = m_models->currentData(Qt::UserRole + 1);
    int chosen = -1;
    {
        const QSignalBlocker blocker(m_models);
        m_models->clear();
        for (const std::vector<TryChoice>* list : {&m_choices, &m_folders}) {
            for (const TryChoice& choice : *list) {
                const int at = m_models->count();
                const QString where = QString::fromStdString(choice.path);
                m_models->addItem(choice.label, where);
                m_models->setItemData(at, choice.runId, Qt::UserRole + 1);
                m_models->setItemData(at, choice.isLive, Qt::UserRole + 2);
                m_models->setItemData(at, where, Qt::ToolTipRole);
                const bool same = choice.runId != 0 ? run == choice.runId
                                                    : run.toLongLong() == 0 && path == where;
                chosen = same && path.isValid() && chosen < 0 ? at : chosen;
            }
        }
        m_models->setCurrentIndex(m_models->count() == 0 ? -1 : std::max(chosen, 0));
    }
    enable();
    onChosen();
}

void TryColumn::setBusy(bool busy)
{
    m_busy = busy;
    enable();
}

void TryColumn::enable()
{
    m_models->setEnabled(!m_busy && m_models->count() > 0);
    m_weights->setEnabled(!m_busy);
    m_folder->setEnabled(!m_busy);
}

TryChoice TryColumn::choice() const
{
    if (m_models->currentIndex() < 0)
        return {};
    return {m_models->currentText(), m_models->currentData(Qt::UserRole).toString().toStdString(),
        m_models->currentData(Qt::UserRole + 1).toLongLong(),
        m_models->currentData(Qt::UserRole + 2).toBool()};
}

TryTarget TryColumn::target() const
{
    const TryChoice chosen = choice();
    if (chosen.isLive)
        return {{}, chosen.runId};
    const QString checkpoint = m_weights->currentData().toString();
    return {checkpoint.isEmpty() ? chosen.path : checkpoint.toStdString(), 0};
}

void TryColumn::onChosen()
{
    const TryChoice now = choice();
    const bool isAnother =
        now.runId != m_shown.runId || (now.runId == 0 && now.path != m_shown.path);
    m_shown = now;
    {
        const QSignalBlocker blocker(m_weights);
        if (isAnother || now.isLive)
            m_weights->clear();
    }
    m_weights->setVisible(m_weights->count() > 1);
    if (isAnother && !m_busy)
        setProgress({}); // the answer was another's
    else
        showState();
    emit runChosen(now.isLive ? 0 : now.runId);
    emit chosen();
}

void TryColumn::setCheckpoints(
    qint64 runId, const std::vector<CheckpointRow>& checkpoints, qint64 bestStep)
{
    if (runId == 0 || runId != choice().runId || choice().isLive)
        return;
    const QSignalBlocker blocker(m_weights);
    const QVariant before = m_weights->currentData();
    m_weights->clear();
    m_weights->addItem(tr("Last"), QString());
    for (auto row = checkpoints.rbegin(); row != checkpoints.rend(); ++row) {
        if (row->state != "complete" && row->state != "verified")
            continue;
        const QString step = countText(row->step);
        m_weights->addItem(
            row->step == bestStep ? tr("Step %1, the best").arg(step) : tr("Step %1").arg(step),
            QString::fromStdString(row->path));
    }
    m_weights->setCurrentIndex(std::max(0, m_weights->findData(before)));
    m_weights->setVisible(m_weights->count() > 1);
}

void TryColumn::setProgress(const TryProgress& progress)
{
    m_progress = progress;
    const QString text = QString::fromStdString(progress.answer.text);
    if (text != m_answer->toPlainText()) {
        m_answer->setPlainText(text);
        m_answer->verticalScrollBar()->setValue(m_answer->verticalScrollBar()->maximum());
    }
    const QString read = QString::fromStdString(progress.answer.read);
    if (read != m_read->toPlainText())
        m_read->setPlainText(read);
    showState();
    showFigures();
}

QString TryColumn::answerText() const
{
    return m_answer->toPlainText();
}

QString TryColumn::figuresText() const
{
    return m_figures->text();
}

QString TryColumn::readText() const
{
    return m_read->toPlainText();
}

QString TryColumn::emptyText() const
{
    if (m_models->count() > 0)
        return {};
    return m_side == Side::Base ? tr("No model yet: choose the folder of one.")
                                : tr("No tuned model yet: try the base model, or finish a run.");
}

void TryColumn::showState()
{
    using Kind = MessageLabel::Kind;
    m_answer->setPlaceholderText(m_progress.state == State::Done
                                     ? tr("The model ended its answer at once, without a word.")
                                     : tr("The answer appears here."));
    const bool isPlain = !m_progress.answer.read.empty() && !m_progress.answer.byTemplate;
    const QString plain =
        isPlain ? tr("The model has no chat template: it read plain text.") : QString();
    switch (m_progress.state) {
    case State::Idle:
        m_message->show(Kind::Info, emptyText());
        break;
    case State::Waiting:
        m_message->show(Kind::Busy,
            choice().isLive ? tr("Waiting for the end of a step…") : tr("Waiting for its turn…"));
        break;
    case State::Loading:
        m_message->show(Kind::Busy, tr("Loading the model…"));
        break;
    case State::Answering:
        m_message->show(Kind::Busy, tr("Answering…"));
        break;
    case State::Done:
        m_message->show(Kind::Info, plain);
        break;
    case State::Stopped:
        m_message->show(Kind::Warning, tr("Stopped."));
        break;
    case State::Failed:
        m_message->show(Kind::Error, m_progress.error);
        break;
    }
}

void TryColumn::showFigures()
{
    const Answer& answer = m_progress.answer;
    QStringList parts;
    if (answer.tokens > 0)
        parts << tr("%n token(s)", nullptr, static_cast<int>(answer.tokens));
    if (answer.tokens > 0 && answer.seconds > 0.0)
        parts << tr("%1 tokens/s")
                     .arg(numberText(static_cast<double>(answer.tokens) / answer.seconds, 1));
    if (m_progress.state == State::Done && !answer.ended)
        parts << tr("cut at the most tokens");
    if (m_progress.step >= 0)
        parts << tr("answered after step %1").arg(countText(m_progress.step));
    m_figures->setText(parts.join(QStringLiteral(" · ")));
}

void TryColumn::askForFolder()
{
    const QString folder = QFileDialog::getExistingDirectory(this, tr("Choose a model folder"));
    if (!folder.isEmpty())
        addFolder(folder);
}

void TryColumn::changeEvent(QEvent* event)
{
    QWidget::changeEvent(event);
    if (event->type() == QEvent::LanguageChange)
        retranslateUi();
}

void TryColumn::retranslateUi()
{
    const QString title = m_side == Side::Base ? tr("Base") : tr("Tuned");
    m_card->setTitle(title);
    m_models->setAccessibleName(tr("%1: model or run").arg(title));
    m_weights->setAccessibleName(tr("%1: weights").arg(title));
    for (QComboBox* box : {m_models, m_weights}) // its list takes the focus when it is open
        box->view()->setAccessibleName(box->accessibleName());
    m_answer->setAccessibleName(tr("%1: answer").arg(title));
    m_read->setAccessibleName(tr("%1: what the model reads").arg(title));
    m_folder->setAccessibleName(tr("%1: choose a model folder").arg(title));
    m_folder->setToolTip(tr("Choose a model folder"));
    m_fold->setText(tr("Text that the model reads"));
    if (m_weights->count() > 0)
        m_weights->setItemText(0, tr("Last"));
    showState();
    showFigures();
}

} // namespace mr::ui
