// RunEditor: a person's changes of the history, written off the UI thread, with undo.
//
// A change is written before it goes on the stack, so the stack never holds a refused one. Undo and
// redo take the same way. Erased runs cannot come back: an erasure empties the stack.
//
// Threads    UI thread; the edits are done one after the other on a thread of this class.
// Ownership  Borrows the RunEdits. The destructor waits for the edit that is under way.
// Errors     failed() carries the sentence of a change that was refused, by then nothing changed.

#pragma once

#include <millrace/run_edits.h>

#include <QObject>
#include <QString>
#include <QStringList>
#include <QThreadPool>
#include <QUndoStack>

#include <functional>
#include <vector>

namespace mr::ui {

class RunEditor final : public QObject
{
    Q_OBJECT

public:
    using Ids = std::vector<std::int64_t>;

    explicit RunEditor(RunEdits* edits, QObject* parent = nullptr);

    bool canEdit() const { return m_edits != nullptr; }
    QUndoStack* stack() { return &m_stack; }

    void rename(qint64 runId, const QString& name);
    void setNote(qint64 runId, const QString& note);
    void addTag(const Ids& runs, const QString& tag);
    void removeTag(const Ids& runs, const QString& tag);
    void remove(const Ids& runs);
    void restore(const Ids& runs);
    // measured() follows.
    void measure(const Ids& runs);
    // For good; see RunEdits::erase().
    void erase(const Ids& runs, quint64 confirmedBytes);
    // Forgets runs that were deleted too long ago.
    void expire();
    // tagsReady() follows.
    void readTags();

signals:
    void changed(); // rows read before are out of date
    // Tells of a change that does not show where it was made; `canUndo`: it is on top of the stack.
    void said(const QString& sentence, bool canUndo);
    void failed(const QString& sentence);
    void measured(const std::vector<std::int64_t>& runs, const mr::RunFiles& files);
    void tagsReady(const QStringList& tags);

private:
    using Work = std::function<Status()>;

    // `done` runs on the UI thread if `work` was right.
    template <typename T>
    void run(std::function<Result<T>()> work, std::function<void(const T&)> done);
    void apply(Work work, const QString& sentence);
    // Puts a change that was made on the stack.
    void push(const QString& sentence, Work undo, Work redo);

    RunEdits* m_edits;
    QUndoStack m_stack;
    QThreadPool m_pool; // one thread, so that changes keep their order; destroyed first: it waits
};

} // namespace mr::ui
