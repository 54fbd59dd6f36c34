#include "pages/run_notes.h"

#include "text/theme_colors.h"
#include "widgets/card.h"

#include <QCompleter>
#include <QKeyEvent>
#include <QLabel>
#include <QLineEdit>
#include <QPlainTextEdit>
#include <QStringListModel>
#include <QVBoxLayout>

#include <algorithm>

namespace mr::ui {

namespace {

constexpr QChar kComma = u',';

QStringList wordsOf(const QString& text)
{
    QStringList words;
    for (const QString& part : text.split(kComma)) {
        const QString word = part.simplified();
        if (!word.isEmpty() && !words.contains(word, Qt::CaseInsensitive))
            words << word;
    }
    return words;
}

// Completes the last of several words.
class LastWordCompleter final : public QCompleter
{
public:
    using QCompleter::QCompleter;

    QStringList splitPath(const QString& path) const override
    {
        return {path.section(kComma, -1).trimmed()};
    }

    QString pathFromIndex(const QModelIndex& index) const override
    {
        const auto* edit = qobject_cast<QLineEdit*>(widget());
        QStringList words = edit == nullptr ? QStringList() : edit->text().split(kComma);
        if (!words.isEmpty())
            words.removeLast();
        for (QString& word : words)
            word = word.simplified();
        words << QCompleter::pathFromIndex(index);
        return words.join(QStringLiteral(", "));
    }
};

} // namespace

RunNotes::RunNotes(QWidget* parent)
    : QFrame(parent)
    , m_title(new QLabel)
    , m_tags(new QLineEdit)
    , m_note(new QPlainTextEdit)
{
    setAccessibleName(tr("Tags and note"));
    QFont bold = m_title->font();
    bold.setBold(true);
    m_title->setFont(bold);
    m_title->setTextFormat(Qt::PlainText);
    m_title->setWordWrap(true);
    m_tags->setObjectName(QStringLiteral("runTags"));
    m_tags->setToolTip(tr("Words that runs have in common, with commas between them. "
                          "“tag:word” in the filter finds them."));
    m_note->setObjectName(QStringLiteral("runNote"));
    m_note->setTabChangesFocus(true);
    auto* completer = new LastWordCompleter(this);
    completer->setModel(new QStringListModel(completer));
    completer->setCaseSensitivity(Qt::CaseInsensitive);
    m_tags->setCompleter(completer);
    auto* tagsLabel = new QLabel(tr("&Tags"));
    tagsLabel->setBuddy(m_tags);
    auto* noteLabel = new QLabel(tr("N&ote"));
    noteLabel->setBuddy(m_note);
    m_tags->setAccessibleName(tr("Tags"));
    m_note->setAccessibleName(tr("Note"));
    auto* layout = new QVBoxLayout(this);
    layout->setContentsMargins(12, 10, 12, 10);
    layout->addWidget(m_title);
    for (QWidget* widget : std::initializer_list<QWidget*>{tagsLabel, m_tags, noteLabel})
        layout->addWidget(widget);
    layout->addWidget(m_note, 1);
    connect(m_tags, &QLineEdit::editingFinished, this, &RunNotes::commitTags);
    m_note->installEventFilter(this);
    m_tags->installEventFilter(this);
    setRuns({});
}

void RunNotes::setRuns(const std::vector<RunRow>& runs)
{
    std::vector<std::int64_t> ids;
    for (const RunRow& run : runs)
        ids.push_back(run.id);
    const bool isSame = ids == m_runs;
    if (!isSame)
        commit();
    m_runs = ids;
    QStringList common;
    for (const std::string& tag : runs.empty() ? std::vector<std::string>() : runs.front().tags) {
        const bool everywhere = std::all_of(runs.begin(), runs.end(), [&tag](const RunRow& run) {
            return std::find(run.tags.begin(), run.tags.end(), tag) != run.tags.end();
        });
        if (everywhere)
            common << QString::fromStdString(tag);
    }
    const QString note = runs.size() == 1 ? QString::fromStdString(runs.front().notes) : QString();
    // A field that is being typed in is left alone.
    if (!isSame || (common != m_tagsShown && !m_tags->hasFocus())) {
        m_tagsShown = common;
        showTags();
    }
    if (!isSame || (note != m_noteShown && !m_note->hasFocus())) {
        m_noteShown = note;
        showNote();
    }
    m_title->setText(runs.empty()       ? tr("No run is chosen.")
                     : runs.size() == 1 ? QString::fromStdString(runs.front().name)
                                        : tr("%n run(s)", nullptr, static_cast<int>(runs.size())));
    m_tags->setEnabled(!runs.empty());
    m_tags->setPlaceholderText(runs.empty() ? QString() : tr("keep, baseline"));
    m_note->setEnabled(runs.size() == 1);
    m_note->setPlaceholderText(runs.size() > 1 ? tr("Choose one run to write a note.") : QString());
}

void RunNotes::setKnownTags(const QStringList& tags)
{
    static_cast<QStringListModel*>(m_tags->completer()->model())->setStringList(tags);
}

void RunNotes::showTags()
{
    m_tags->setText(m_tagsShown.join(QStringLiteral(", ")));
}

void RunNotes::showNote()
{
    m_note->setPlainText(m_noteShown);
}

void RunNotes::commit()
{
    commitTags();
    commitNote();
}

void RunNotes::commitTags()
{
    if (m_runs.empty())
        return;
    const QStringList before = m_tagsShown;
    m_tagsShown = wordsOf(m_tags->text());
    for (const QString& tag : before) {
        if (!m_tagsShown.contains(tag, Qt::CaseInsensitive))
            emit tagRemoved(m_runs, tag);
    }
    for (const QString& tag : std::as_const(m_tagsShown)) {
        if (!before.contains(tag, Qt::CaseInsensitive))
            emit tagAdded(m_runs, tag);
    }
}

void RunNotes::commitNote()
{
    const QString text = m_note->toPlainText();
    if (m_runs.size() != 1 || text == m_noteShown)
        return;
    m_noteShown = text;
    emit noteEdited(m_runs.front(), text);
}

bool RunNotes::eventFilter(QObject* watched, QEvent* event)
{
    if (watched == m_note && event->type() == QEvent::FocusOut)
        commitNote();
    if (event->type() == QEvent::KeyPress && handleKey(watched, event))
        return true;
    return QFrame::eventFilter(watched, event);
}

bool RunNotes::handleKey(QObject* watched, QEvent* event)
{
    const auto* key = static_cast<QKeyEvent*>(event);
    if (key->key() == Qt::Key_Escape) {
        watched == m_note ? showNote() : showTags();
        return true;
    }
    const bool isEnter = key->key() == Qt::Key_Return || key->key() == Qt::Key_Enter;
    if (watched != m_note || !isEnter || !(key->modifiers() & Qt::ControlModifier))
        return false;
    commitNote();
    return true;
}

void RunNotes::paintEvent(QPaintEvent*)
{
    paintCard(*this, themeColors(palette()).border);
}

} // namespace mr::ui
