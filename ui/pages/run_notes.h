// RunNotes: the tags and the note of the runs that are chosen, beside their table.
//
// Typed text is handed on when the field is left, by Ctrl+Enter, and before another run is shown;
// Escape takes it back. For several runs it shows the tags that all have, and adds or removes a tag
// for each of them.
//
// Threads  GUI.

#pragma once

#include <millrace/run_reader.h>

#include <QFrame>
#include <QStringList>

#include <vector>

class QLabel;
class QLineEdit;
class QPlainTextEdit;

namespace mr::ui {

class RunNotes final : public QFrame
{
    Q_OBJECT

public:
    explicit RunNotes(QWidget* parent = nullptr);

    void setRuns(const std::vector<RunRow>& runs);
    void setKnownTags(const QStringList& tags); // are offered while one is typed
    // Hands on typed text from a field that was not left yet.
    void commit();
    QLineEdit* tags() const { return m_tags; }
    QPlainTextEdit* note() const { return m_note; }

signals:
    void noteEdited(qint64 runId, const QString& note);
    void tagAdded(const std::vector<std::int64_t>& runs, const QString& tag);
    void tagRemoved(const std::vector<std::int64_t>& runs, const QString& tag);

protected:
    bool eventFilter(QObject* watched, QEvent* event) override;
    void paintEvent(QPaintEvent* event) override;

private:
    bool handleKey(QObject* watched, QEvent* event);
    void commitTags();
    void commitNote();
    void showTags();
    void showNote();

    std::vector<std::int64_t> m_runs;
    QStringList m_tagsShown;
    QString m_noteShown;
    QLabel* m_title;
    QLineEdit* m_tags;
    QPlainTextEdit* m_note;
};

} // namespace mr::ui
