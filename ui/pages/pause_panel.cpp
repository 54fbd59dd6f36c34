#include "pages/pause_panel.h"

#include "models/run_pause.h"
#include "text/theme_colors.h"
#include "widgets/card.h"
#include "widgets/message_label.h"

#include <QFileDialog>
#include <QHBoxLayout>
#include <QLabel>
#include <QPushButton>
#include <QVBoxLayout>

#include <algorithm>

namespace mr::ui {

namespace {

constexpr int kButtonRoom = 16;

std::int64_t lastPause(const RunSnapshot& snapshot)
{
    const auto last = std::find_if(snapshot.events.rbegin(), snapshot.events.rend(),
        [](const EventRow& row) { return row.code == "paused"; });
    return last == snapshot.events.rend() ? 0 : last->id;
}

} // namespace

PausePanel::PausePanel(QWidget* parent)
    : QFrame(parent)
    , m_title(new MessageLabel)
    , m_text(new QLabel)
    , m_buttons(new QWidget)
{
    setAccessibleName(tr("Paused"));
    QFont bold = font();
    bold.setBold(true);
    m_title->setFont(bold);
    m_text->setWordWrap(true);
    m_text->setTextFormat(Qt::PlainText);
    m_text->setTextInteractionFlags(Qt::TextSelectableByMouse);
    auto* row = new QHBoxLayout(m_buttons);
    row->setContentsMargins(0, 4, 0, 0);
    row->setSpacing(8);
    m_again = addButton(
        tr("Try again"), "pause-again", tr("Write it now; for when you have made some room."));
    connect(m_again, &QPushButton::clicked, this, [this] { give(PauseAnswer::Kind::TryAgain); });
    connect(addButton(tr("Choose another folder…"), "pause-folder",
                tr("This and later checkpoints, and the trained model, are written there. Older "
                   "checkpoints stay where they are.")),
        &QPushButton::clicked, this, &PausePanel::chooseFolder);
    connect(addButton(tr("Go on without"), "pause-without",
                tr("Train on without writing it. Should the run end before the next checkpoint, "
                   "it goes on from the last one that was written.")),
        &QPushButton::clicked, this, [this] { give(PauseAnswer::Kind::GoOnWithout); });
    row->addStretch(1);
    auto* layout = new QVBoxLayout(this);
    layout->setContentsMargins(12, 8, 12, 10);
    layout->setSpacing(4);
    layout->addWidget(m_title);
    layout->addWidget(m_text);
    layout->addWidget(m_buttons);
    hide();
}

QPushButton* PausePanel::addButton(const QString& text, const char* name, const QString& toolTip)
{
    auto* button = new QPushButton(text);
    button->setObjectName(QLatin1String(name));
    button->setToolTip(toolTip);
    button->setMinimumWidth(button->sizeHint().width() + kButtonRoom);
    m_buttons->layout()->addWidget(button);
    return button;
}

void PausePanel::setAnswerable(bool on)
{
    m_buttons->setVisible(on);
}

void PausePanel::setSnapshot(const RunSnapshotPtr& snapshot)
{
    const auto pause = pauseOf(*snapshot);
    setVisible(pause.has_value());
    if (!pause)
        return;
    // An answer was given: until the run says how it went, there is nothing more to press.
    const std::int64_t id = lastPause(*snapshot);
    if (id != m_pauseId)
        m_buttons->setEnabled(true);
    m_pauseId = id;
    m_folder = pause->folder;
    m_title->show(MessageLabel::Kind::Warning, RunPauseText::title(*pause));
    m_text->setText(RunPauseText::sentence(*pause));
}

void PausePanel::give(PauseAnswer::Kind kind, const QString& folder)
{
    m_buttons->setEnabled(false);
    emit answered({kind, folder.toStdString()});
}

void PausePanel::chooseFolder()
{
    const QString folder =
        QFileDialog::getExistingDirectory(this, tr("Folder for checkpoints"), m_folder);
    if (!folder.isEmpty())
        give(PauseAnswer::Kind::OtherFolder, folder);
}

void PausePanel::paintEvent(QPaintEvent*)
{
    paintCard(*this, themeColors(palette()).warning);
}

} // namespace mr::ui
