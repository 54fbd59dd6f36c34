#include "pages/glossary.h"

#include "text/policy_words.h"
#include "text/stall_words.h"

#include <millrace/run_reader.h>

#include <QKeySequence>

#include <array>

namespace mr::ui {

namespace {

struct Word {
    std::size_t section;
    const char* context; // translation context of the term in the window; null: the glossary's
    const char* term;
    const char* meaning;
    const char* plainName = nullptr; // policies only: the term is the technical name
};

struct Key {
    std::size_t section;
    QString keys;
    const char* what;
};

constexpr std::array kSections = {
    QT_TRANSLATE_NOOP("mr::ui::Glossary", "Policies: where weights and optimizer state live"),
    QT_TRANSLATE_NOOP("mr::ui::Glossary", "The plan"),
    QT_TRANSLATE_NOOP("mr::ui::Glossary", "Causes of stalls"),
    QT_TRANSLATE_NOOP("mr::ui::Glossary", "Settings"),
};
constexpr std::size_t kCauses = 2; // the section of the ledger's words

constexpr std::array kWords = {
    Word{0, nullptr, "resident",
        QT_TRANSLATE_NOOP("mr::ui::Glossary",
            "Weights, gradients and optimizer state are all on the device. "
            "It is the fastest where they fit."),
        "all on the card"},
    Word{0, nullptr, "zero-offload",
        QT_TRANSLATE_NOOP("mr::ui::Glossary",
            "The optimizer state is in host memory, and the processor "
            "updates the weights there."),
        "state in RAM"},
    Word{0, nullptr, "zero-offload-dpu",
        QT_TRANSLATE_NOOP("mr::ui::Glossary",
            "Works like \"state in RAM\", but the processor's update comes one "
            "step late and so costs no time of its own."),
        "state in RAM, late by one step"},
    Word{0, nullptr, "deep-optimizer-states",
        QT_TRANSLATE_NOOP("mr::ui::Glossary",
            "The optimizer state is in host memory. Device and processor "
            "each make a part of every update at the same time."),
        "state shared"},
    Word{0, nullptr, "zenflow",
        QT_TRANSLATE_NOOP("mr::ui::Glossary",
            "The columns that matter most are updated on the device at "
            "every step. The processor updates the others once in a window "
            "of steps."),
        "hot columns first"},
    Word{0, nullptr, "streamed",
        QT_TRANSLATE_NOOP("mr::ui::Glossary",
            "Weights and optimizer state are in host memory, and layers "
            "visit the device one after the other."),
        "weights in RAM"},
    Word{0, nullptr, "ssd-vertical",
        QT_TRANSLATE_NOOP("mr::ui::Glossary",
            "Works like \"weights in RAM\", with the optimizer state on an SSD "
            "as well; layers are read and written while others compute."),
        "on the SSD"},
    Word{1, "mr::ui::PlanWords", "exact",
        QT_TRANSLATE_NOOP(
            "mr::ui::Glossary", "The result has the same bits as training on the device alone.")},
    Word{1, nullptr, QT_TRANSLATE_NOOP("mr::ui::Glossary", "stale"),
        QT_TRANSLATE_NOOP("mr::ui::Glossary",
            "A part of the weights lags behind by at most so many steps. "
            "The result differs a little from exact training.")},
    Word{1, "mr::ui::PlanWords", "clipped by groups",
        QT_TRANSLATE_NOOP("mr::ui::Glossary",
            "The gradient of each layer is clipped by itself and not by the "
            "norm of the whole gradient.")},
    Word{1, nullptr, "late",
        QT_TRANSLATE_NOOP("mr::ui::Glossary",
            "The share of each update that is made after the step has "
            "ended, while the next one computes.")},
    Word{1, nullptr, "order=by-layer",
        QT_TRANSLATE_NOOP("mr::ui::Glossary",
            "Micro-batches go through one layer after the other, so that "
            "each layer visits the device once a step.")},
    Word{1, "mr::ui::PlanWords", "Device memory",
        QT_TRANSLATE_NOOP("mr::ui::Glossary",
            "The memory of the GPU. For the CPU device it is a part of the "
            "machine's memory that plays that role.")},
    Word{1, "mr::ui::PlanWords", "Host memory",
        QT_TRANSLATE_NOOP("mr::ui::Glossary",
            "The machine's main memory, as far as it is set aside for "
            "copies to the device.")},
    Word{1, "mr::ui::PlanWords", "Frozen weights",
        QT_TRANSLATE_NOOP("mr::ui::Glossary",
            "The run computes with them and does not change them, so they have no gradients and "
            "no optimizer state.")},
    Word{1, "mr::ui::PlanWords", "Master weights, high half",
        QT_TRANSLATE_NOOP("mr::ui::Glossary",
            "Each weight has 32 bits; this half of them is what the model "
            "computes with in bf16.")},
    Word{1, "mr::ui::PlanWords", "Master weights, low half",
        QT_TRANSLATE_NOOP("mr::ui::Glossary",
            "The rest of each weight keeps small updates from being lost: the "
            "other 16 bits, or 8 that stand for them.")},
    Word{1, "mr::ui::PlanWords", "Adam first moments",
        QT_TRANSLATE_NOOP("mr::ui::Glossary", "For each weight the running mean of its gradient.")},
    Word{1, "mr::ui::PlanWords", "Adam second moments",
        QT_TRANSLATE_NOOP("mr::ui::Glossary",
            "For each weight the running mean of its squared gradient, "
            "which sets the size of its steps.")},
    Word{1, "mr::ui::PlanWords", "Averages by row and column",
        QT_TRANSLATE_NOOP("mr::ui::Glossary",
            "A light optimizer keeps these running means of squared gradients instead of Adam's "
            "moments: one number for each row and column of a matrix.")},
    Word{1, "mr::ui::PlanWords", "Gradient sums",
        QT_TRANSLATE_NOOP(
            "mr::ui::Glossary", "The gradients of all micro-batches of a step, added up.")},
    Word{1, "mr::ui::PlanWords", "Activations",
        QT_TRANSLATE_NOOP("mr::ui::Glossary",
            "Tensors that the forward pass keeps because the backward pass needs "
            "them.")},
    Word{1, "mr::ui::PlanWords", "Layer inputs",
        QT_TRANSLATE_NOOP("mr::ui::Glossary",
            "The activation that one layer hands to the next. The rest of a "
            "layer can be computed again from it.")},
    Word{1, "mr::ui::PlanWords", "Loss head",
        QT_TRANSLATE_NOOP("mr::ui::Glossary",
            "Memory for the last layer, which compares predictions with the "
            "tokens that should come.")},
    Word{1, "mr::ui::PlanWords", "Workspace",
        QT_TRANSLATE_NOOP("mr::ui::Glossary", "Memory that computations use for a moment.")},
    Word{1, "mr::ui::PlanWords", "Staging for copies",
        QT_TRANSLATE_NOOP("mr::ui::Glossary",
            "Memory that bytes pass through on their way between host and "
            "device.")},
    Word{1, "mr::ui::PlanWords", "State of urgent columns",
        QT_TRANSLATE_NOOP("mr::ui::Glossary",
            "Urgent columns are those that zenflow (hot columns first) updates at every step.")},
    Word{1, "mr::ui::PlanWords", "Gradient sums over a window",
        QT_TRANSLATE_NOOP("mr::ui::Glossary",
            "The gradients of the other columns since their last update, added up.")},
    Word{3, "mr::ui::SettingsForm", "Micro-batch",
        QT_TRANSLATE_NOOP("mr::ui::Glossary",
            "Together with Accumulate this is the batch size: a step trains "
            "on the product of both.")},
    Word{3, "mr::ui::SettingsForm", "Accumulate",
        QT_TRANSLATE_NOOP("mr::ui::Glossary",
            "A larger number trains on more sequences in a step without "
            "taking more device memory.")},
    Word{3, "mr::ui::SettingsForm", "Learning rate",
        QT_TRANSLATE_NOOP("mr::ui::Glossary",
            "How far the weights move in a step. A loss that rises or jumps "
            "asks for a smaller one.")},
    Word{3, "mr::ui::SettingsForm", "Sequence length",
        QT_TRANSLATE_NOOP("mr::ui::Glossary",
            "How many tokens the model sees at once. Memory and time grow "
            "with it.")},
    Word{3, "mr::ui::MethodWords", "An adapter (LoRA)",
        QT_TRANSLATE_NOOP("mr::ui::Glossary",
            "It needs little more memory than the model itself. The model changes less than by "
            "training everything.")},
    Word{3, "mr::ui::SettingsForm", "Rank",
        QT_TRANSLATE_NOOP("mr::ui::Glossary",
            "Twice the rank is twice the parameters of the adapter. Ranks from 8 to 64 are "
            "usual.")},
    Word{3, "mr::ui::SettingsForm", "Alpha",
        QT_TRANSLATE_NOOP("mr::ui::Glossary",
            "A larger alpha makes the adapter count more, much like a larger learning rate.")},
    Word{3, "mr::ui::SettingsForm", "Recompute",
        QT_TRANSLATE_NOOP("mr::ui::Glossary",
            "Takes less device memory. Each block costs about a third more "
            "computation, norms and activation functions little.")},
    Word{3, "mr::ui::SettingsForm", "Warm-up",
        QT_TRANSLATE_NOOP("mr::ui::Glossary",
            "Small steps at first, until the running means of the optimizer "
            "are known.")},
    Word{3, "mr::ui::SettingsForm", "Host memory",
        QT_TRANSLATE_NOOP("mr::ui::Glossary",
            "Pinned memory stays where it is, so the GPU can copy to and "
            "from it by itself.")},
    Word{3, "mr::ui::SettingsForm", "Simulated link",
        QT_TRANSLATE_NOOP(
            "mr::ui::Glossary", "For study on a machine without a GPU; leave it off to train.")},
    Word{3, nullptr, QT_TRANSLATE_NOOP("mr::ui::Glossary", "Pack"),
        QT_TRANSLATE_NOOP("mr::ui::Glossary",
            "Short sequences share a row, each by itself, so that less is "
            "computed on padding.")},
    Word{3, nullptr, QT_TRANSLATE_NOOP("mr::ui::Glossary", "nats per token"),
        QT_TRANSLATE_NOOP("mr::ui::Glossary",
            "The unit of the loss: how surprised the model is by each "
            "token. Less is better.")},
};

constexpr std::array kKeySections = {
    QT_TRANSLATE_NOOP("mr::ui::Glossary", "Everywhere"),
    QT_TRANSLATE_NOOP("mr::ui::Glossary", "New run"),
    QT_TRANSLATE_NOOP("mr::ui::Glossary", "History"),
    QT_TRANSLATE_NOOP("mr::ui::Glossary", "Charts"),
    QT_TRANSLATE_NOOP("mr::ui::Glossary", "Timeline of a step"),
    QT_TRANSLATE_NOOP("mr::ui::Glossary", "Try it"),
};

QString native(const QKeySequence& keys)
{
    return keys.toString(QKeySequence::NativeText);
}

QString both(Qt::Key first, Qt::Key second)
{
    return native(first) + QStringLiteral(", ") + native(second);
}

QString range(Qt::Key first, Qt::Key last)
{
    return native(Qt::CTRL | first) + QStringLiteral(" … ") + native(Qt::CTRL | last);
}

QString termOf(const Word& word)
{
    if (word.plainName)
        return PolicyWords::shown({word.term, word.plainName});
    return QCoreApplication::translate(word.context ? word.context : "mr::ui::Glossary", word.term);
}

HelpEntry entryOf(const Word& word)
{
    return {Glossary::tr(kSections.at(word.section)), termOf(word), Glossary::tr(word.meaning)};
}

} // namespace

QVector<HelpEntry> Glossary::words()
{
    QVector<HelpEntry> entries;
    const auto add = [&entries](bool isSetting) {
        for (const Word& word : kWords)
            if ((word.section > kCauses) == isSetting)
                entries << entryOf(word);
    };
    add(false);
    for (std::size_t part = 0; part <= kStallCauses; ++part)
        entries << HelpEntry{
            tr(kSections.at(kCauses)), StallWords::name(part), StallWords::explanation(part)};
    add(true);
    return entries;
}

QVector<HelpEntry> Glossary::shortcuts()
{
    const std::vector<Key> keys = {
        {0, range(Qt::Key_1, Qt::Key_6),
            QT_TR_NOOP("Home, New run, Live, History, Compare, Try it")},
        {0, native(QKeySequence::HelpContents), QT_TR_NOOP("This page")},
        {0, native(QKeySequence::Quit), QT_TR_NOOP("Quit")},
        {1, native(Qt::CTRL | Qt::Key_Return), QT_TR_NOOP("Start the run")},
        {2, native(QKeySequence::Find), QT_TR_NOOP("Find a run")},
        {2, native(Qt::Key_F2), QT_TR_NOOP("Rename the run")},
        {2, native(Qt::Key_T), QT_TR_NOOP("Edit tags")},
        {2, native(Qt::Key_N), QT_TR_NOOP("Edit the note")},
        {2, native(Qt::Key_F9), QT_TR_NOOP("Show tags and notes beside the runs")},
        {2, native(QKeySequence::Delete), QT_TR_NOOP("Delete runs")},
        {2, native(QKeySequence::Undo), QT_TR_NOOP("Undo a change of the history")},
        {2, native(Qt::CTRL | Qt::SHIFT | Qt::Key_Z), QT_TR_NOOP("Redo it")},
        {3, both(Qt::Key_Left, Qt::Key_Right),
            QT_TR_NOOP("Move the cursor by a step, with Shift by ten")},
        {3, both(Qt::Key_Plus, Qt::Key_Minus), QT_TR_NOOP("Zoom; so does the wheel with Ctrl")},
        {3, native(Qt::Key_0), QT_TR_NOOP("Show all steps")},
        {3, native(Qt::Key_L), QT_TR_NOOP("Logarithmic scale")},
        {4, both(Qt::Key_PageUp, Qt::Key_PageDown), QT_TR_NOOP("The kept step before, or after")},
        {4, both(Qt::Key_Comma, Qt::Key_Period), QT_TR_NOOP("The task before, or after")},
        {4, native(Qt::Key_F), QT_TR_NOOP("Show the chosen task as large as the chart")},
        {5, native(Qt::CTRL | Qt::Key_Return), QT_TR_NOOP("Ask")},
        {5, native(Qt::Key_Escape), QT_TR_NOOP("Stop the answers")},
    };
    QVector<HelpEntry> entries;
    for (const Key& key : keys)
        if (!key.keys.isEmpty()) // not every desktop has a key to quit
            entries << HelpEntry{tr(kKeySections.at(key.section)), key.keys, tr(key.what)};
    return entries;
}

} // namespace mr::ui
