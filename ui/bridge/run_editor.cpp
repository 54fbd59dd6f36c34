#include "bridge/run_editor.h"

#include <QFutureWatcher>
#include <QtConcurrentRun>

#include <memory>
#include <utility>

namespace mr::ui {

namespace {

struct Nothing {
};

Result<Nothing> asResult(const Status& status)
{
    if (!status.ok())
        return status;
    return Nothing{};
}

// QUndoStack calls redo() on push. This command was already done by then, so the first is skipped.
class Edit final : public QUndoCommand
{
public:
    Edit(const QString& sentence, std::function<void()> undoIt, std::function<void()> redoIt)
        : QUndoCommand(sentence)
        , m_undo(std::move(undoIt))
        , m_redo(std::move(redoIt))
    {
    }

    void undo() override { m_undo(); }

    void redo() override
    {
        if (std::exchange(m_isDone, true))
            m_redo();
    }

private:
    std::function<void()> m_undo;
    std::function<void()> m_redo;
    bool m_isDone = false;
};

} // namespace

RunEditor::RunEditor(RunEdits* edits, QObject* parent)
    : QObject(parent)
    , m_edits(edits)
{
    m_pool.setMaxThreadCount(1);
}

template <typename T>
void RunEditor::run(std::function<Result<T>()> work, std::function<void(const T&)> done)
{
    if (m_edits == nullptr)
        return;
    // Shared, because a QFuture copies and a Result need not be copied.
    using Answer = std::shared_ptr<Result<T>>;
    auto* watcher = new QFutureWatcher<Answer>(this);
    connect(watcher, &QFutureWatcherBase::finished, this, [this, watcher, done = std::move(done)] {
        watcher->deleteLater();
        const Answer answer = watcher->result();
        if (answer->ok())
            done(answer->value());
        else
            emit failed(QString::fromStdString(answer->status().message()));
    });
    watcher->setFuture(QtConcurrent::run(
        &m_pool, [work = std::move(work)] { return std::make_shared<Result<T>>(work()); }));
}

void RunEditor::apply(Work work, const QString& sentence)
{
    run<Nothing>([work = std::move(work)] { return asResult(work()); },
        [this, sentence](const Nothing&) {
            emit changed();
            emit said(sentence, false);
        });
}

void RunEditor::push(const QString& sentence, Work undo, Work redo)
{
    m_stack.push(new Edit(
        sentence, [this, undo, sentence] { apply(undo, tr("Undone: %1").arg(sentence)); },
        [this, redo, sentence] { apply(redo, tr("Done again: %1").arg(sentence)); }));
    emit changed();
}

void RunEditor::rename(qint64 runId, const QString& name)
{
    const auto set = [edits = m_edits, runId](
                         const std::string& text) { return edits->rename(runId, text).status(); };
    const std::string wanted = name.toStdString();
    run<std::string>([edits = m_edits, runId, wanted] { return edits->rename(runId, wanted); },
        [this, set, wanted, name](const std::string& before) {
            push(
                tr("Renamed to “%1”").arg(name.trimmed()), [set, before] { return set(before); },
                [set, wanted] { return set(wanted); });
        });
}

void RunEditor::setNote(qint64 runId, const QString& note)
{
    const auto set = [edits = m_edits, runId](
                         const std::string& text) { return edits->setNote(runId, text).status(); };
    const std::string wanted = note.toStdString();
    run<std::string>([edits = m_edits, runId, wanted] { return edits->setNote(runId, wanted); },
        [this, set, wanted](const std::string& before) {
            push(
                tr("Changed a note"), [set, before] { return set(before); },
                [set, wanted] { return set(wanted); });
        });
}

void RunEditor::addTag(const Ids& runs, const QString& tag)
{
    const std::string name = tag.toStdString();
    run<Ids>([edits = m_edits, runs, name] { return edits->addTag(runs, name); },
        [this, edits = m_edits, tag, name](const Ids& had) {
            if (!had.empty())
                push(
                    tr("Added the tag “%1”").arg(tag),
                    [edits, had, name] { return edits->removeTag(had, name).status(); },
                    [edits, had, name] { return edits->addTag(had, name).status(); });
        });
}

void RunEditor::removeTag(const Ids& runs, const QString& tag)
{
    const std::string name = tag.toStdString();
    run<Ids>([edits = m_edits, runs, name] { return edits->removeTag(runs, name); },
        [this, edits = m_edits, tag, name](const Ids& had) {
            if (!had.empty())
                push(
                    tr("Removed the tag “%1”").arg(tag),
                    [edits, had, name] { return edits->addTag(had, name).status(); },
                    [edits, had, name] { return edits->removeTag(had, name).status(); });
        });
}

void RunEditor::remove(const Ids& runs)
{
    run<Ids>([edits = m_edits, runs] { return edits->remove(runs); },
        [this, edits = m_edits](const Ids& gone) {
            if (gone.empty())
                return;
            const QString sentence =
                tr("Deleted %n run(s).", nullptr, static_cast<int>(gone.size()));
            push(
                sentence, [edits, gone] { return edits->restore(gone); },
                [edits, gone] { return edits->remove(gone).status(); });
            emit said(sentence, true);
        });
}

void RunEditor::restore(const Ids& runs)
{
    run<Nothing>([edits = m_edits, runs] { return asResult(edits->restore(runs)); },
        [this, edits = m_edits, runs](const Nothing&) {
            const QString sentence =
                tr("Restored %n run(s).", nullptr, static_cast<int>(runs.size()));
            push(
                sentence, [edits, runs] { return edits->remove(runs).status(); },
                [edits, runs] { return edits->restore(runs); });
            emit said(sentence, true);
        });
}

void RunEditor::measure(const Ids& runs)
{
    run<RunFiles>([edits = m_edits, runs] { return edits->filesOf(runs); },
        [this, runs](const RunFiles& files) { emit measured(runs, files); });
}

void RunEditor::erase(const Ids& runs, quint64 confirmedBytes)
{
    // Some of them may be gone also where it failed.
    run<std::string>(
        [edits = m_edits, runs, confirmedBytes]() -> Result<std::string> {
            return edits->erase(runs, confirmedBytes).message();
        },
        [this](const std::string& problem) {
            m_stack.clear();
            emit changed();
            if (!problem.empty())
                emit failed(QString::fromStdString(problem));
        });
}

void RunEditor::expire()
{
    run<Nothing>([edits = m_edits] { return asResult(edits->expire(kBinMs)); },
        [this](const Nothing&) { emit changed(); });
}

void RunEditor::readTags()
{
    run<std::vector<std::string>>([edits = m_edits] { return edits->tags(); },
        [this](const std::vector<std::string>& names) {
            QStringList tags;
            for (const std::string& name : names)
                tags << QString::fromStdString(name);
            emit tagsReady(tags);
        });
}

} // namespace mr::ui
