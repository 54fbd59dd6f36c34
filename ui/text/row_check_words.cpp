#include "text/row_check_words.h"

namespace mr::ui {

namespace {

// The sentences of core/checks, for translators.
[[maybe_unused]] constexpr const char* kReasons[] = {
    QT_TRANSLATE_NOOP("mr::ui::RowCheckWords", "not JSON"),
    QT_TRANSLATE_NOOP("mr::ui::RowCheckWords", "not UTF-8"),
    QT_TRANSLATE_NOOP("mr::ui::RowCheckWords", "holds a byte of value 0"),
    QT_TRANSLATE_NOOP("mr::ui::RowCheckWords", "not shaped as the rows before it"),
    QT_TRANSLATE_NOOP("mr::ui::RowCheckWords", "more or fewer cells than the first row"),
    QT_TRANSLATE_NOOP("mr::ui::RowCheckWords", "a column does not hold what it is used for"),
    QT_TRANSLATE_NOOP("mr::ui::RowCheckWords", "the chat template cannot write it"),
    QT_TRANSLATE_NOOP("mr::ui::RowCheckWords", "the chat template leaves out a part of it"),
    QT_TRANSLATE_NOOP("mr::ui::RowCheckWords", "no token of it is trained"),
    QT_TRANSLATE_NOOP("mr::ui::RowCheckWords", "what comes before the answer fills the sequence"),
    QT_TRANSLATE_NOOP("mr::ui::RowCheckWords", "longer than the sequence"),
    QT_TRANSLATE_NOOP("mr::ui::RowCheckWords", "an answer is empty"),
    QT_TRANSLATE_NOOP("mr::ui::RowCheckWords", "a question is empty"),
    QT_TRANSLATE_NOOP("mr::ui::RowCheckWords", "the text is empty"),
    QT_TRANSLATE_NOOP("mr::ui::RowCheckWords", "a system text stands behind other turns"),
    QT_TRANSLATE_NOOP("mr::ui::RowCheckWords", "an answer stands before any question"),
    QT_TRANSLATE_NOOP("mr::ui::RowCheckWords", "a tool's result stands behind no call"),
    QT_TRANSLATE_NOOP("mr::ui::RowCheckWords", "two questions follow each other"),
    QT_TRANSLATE_NOOP("mr::ui::RowCheckWords", "two answers follow each other"),
    QT_TRANSLATE_NOOP("mr::ui::RowCheckWords", "nothing answers the last turn"),
    QT_TRANSLATE_NOOP(
        "mr::ui::RowCheckWords", "characters were lost: U+FFFD stands in their place"),
    QT_TRANSLATE_NOOP("mr::ui::RowCheckWords", "UTF-8 was read as Windows-1252"),
    QT_TRANSLATE_NOOP("mr::ui::RowCheckWords", "repeats an earlier row"),
    QT_TRANSLATE_NOOP("mr::ui::RowCheckWords", "nearly repeats an earlier row"),
    QT_TRANSLATE_NOOP("mr::ui::RowCheckWords", "stands in the evaluation data"),
    QT_TRANSLATE_NOOP("mr::ui::RowCheckWords", "nearly repeats a row of the evaluation data"),
};

} // namespace

QString RowCheckWords::name(RowCheck check)
{
    switch (check) {
    case RowCheck::Unreadable:
        return tr("Cannot be read");
    case RowCheck::LeftOut:
        return tr("Lose a part in the chat template");
    case RowCheck::Untrained:
        return tr("Train nothing");
    case RowCheck::Cut:
        return tr("Are cut");
    case RowCheck::EmptyTurn:
        return tr("Have an empty turn");
    case RowCheck::RoleOrder:
        return tr("Have turns out of order");
    case RowCheck::Encoding:
        return tr("Have lost characters");
    case RowCheck::Duplicate:
        return tr("Repeat an earlier row");
    case RowCheck::NearDuplicate:
        return tr("Nearly repeat an earlier row");
    case RowCheck::InEvaluation:
        return tr("Stand in the evaluation data");
    }
    return {};
}

QString RowCheckWords::help(RowCheck check)
{
    switch (check) {
    case RowCheck::Unreadable:
        return tr("A run refuses the file because of them, unless they are left out.");
    case RowCheck::LeftOut:
        return tr("The template has no place for a part of the conversation. A run refuses such "
                  "rows, unless the part or the row is left out.");
    case RowCheck::Untrained:
        return tr("A run skips them.");
    case RowCheck::Cut:
        return tr("They are longer than the sequence length: a run trains their beginning.");
    case RowCheck::EmptyTurn:
        return tr("A model that learns an empty answer learns to say nothing.");
    case RowCheck::RoleOrder:
        return tr("Conversations go in turns: a question, then its answer.");
    case RowCheck::Encoding:
        return tr("The text was read in the wrong encoding before, and the model would learn it "
                  "so.");
    case RowCheck::Duplicate:
        return tr("A row that comes twice weighs twice.");
    case RowCheck::NearDuplicate:
        return tr("At least four of five runs of five words are those of an earlier row, and so "
                  "are its answers. This is an estimate.");
    case RowCheck::InEvaluation:
        return tr("The evaluation would ask what was trained, and look better than it is.");
    }
    return {};
}

QString RowCheckWords::why(std::string_view reason)
{
    return tr(std::string(reason).c_str());
}

} // namespace mr::ui
