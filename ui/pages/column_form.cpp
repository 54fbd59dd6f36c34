#include "pages/column_form.h"

#include <QComboBox>
#include <QEvent>
#include <QGridLayout>
#include <QLabel>
#include <QSignalBlocker>

#include <algorithm>
#include <array>
#include <string_view>

namespace mr::ui {

namespace {

struct Role {
    ColumnForm::Kind kind;
    const char* role;
    bool isNeeded;
    bool isCommon; // else it is offered only where the file has it
    const char* text;
};

constexpr std::array<Role, 10> kRoles = {
    {{ColumnForm::Text, "text", true, true, QT_TRANSLATE_NOOP("mr::ui::ColumnForm", "Text column")},
        {ColumnForm::Pair, "prompt", true, true,
            QT_TRANSLATE_NOOP("mr::ui::ColumnForm", "Prompt column")},
        {ColumnForm::Pair, "input", false, true,
            QT_TRANSLATE_NOOP("mr::ui::ColumnForm", "Column added to the prompt")},
        {ColumnForm::Pair, "response", true, true,
            QT_TRANSLATE_NOOP("mr::ui::ColumnForm", "Response column (trained)")},
        {ColumnForm::Pair, "system", false, true,
            QT_TRANSLATE_NOOP("mr::ui::ColumnForm", "System prompt column")},
        {ColumnForm::Pair, "history", false, false,
            QT_TRANSLATE_NOOP("mr::ui::ColumnForm", "Earlier turns column")},
        {ColumnForm::Pair, "tools", false, false,
            QT_TRANSLATE_NOOP("mr::ui::ColumnForm", "Tools column")},
        {ColumnForm::Chat, "messages", true, true,
            QT_TRANSLATE_NOOP("mr::ui::ColumnForm", "Conversation column (answers are trained)")},
        {ColumnForm::Chat, "system", false, true,
            QT_TRANSLATE_NOOP("mr::ui::ColumnForm", "System prompt column")},
        {ColumnForm::Chat, "tools", false, false,
            QT_TRANSLATE_NOOP("mr::ui::ColumnForm", "Tools column")}}};

const char* textOf(ColumnForm::Kind kind, std::string_view role)
{
    const auto found = std::find_if(kRoles.begin(), kRoles.end(),
        [&](const Role& one) { return one.kind == kind && one.role == role; });
    return found == kRoles.end() ? "" : found->text;
}

ColumnForm::Kind kindOf(const std::map<std::string, std::string>& roles)
{
    if (roles.contains("messages"))
        return ColumnForm::Chat;
    return roles.contains("text") ? ColumnForm::Text : ColumnForm::Pair;
}

} // namespace

ColumnForm::ColumnForm(QWidget* parent)
    : QWidget(parent)
    , m_grid(new QGridLayout(this))
    , m_kindLabel(new QLabel(this))
    , m_kindBox(new QComboBox(this))
{
    m_kindBox->setObjectName(QStringLiteral("rowKind"));
    m_kindLabel->setBuddy(m_kindBox);
    m_grid->setContentsMargins(0, 0, 0, 0);
    m_grid->setColumnStretch(2, 1);
    m_grid->addWidget(m_kindLabel, 0, 0);
    m_grid->addWidget(m_kindBox, 0, 1);
    connect(m_kindBox, &QComboBox::activated, this, &ColumnForm::chooseKind);
    retranslateUi();
    hide();
}

void ColumnForm::setInfo(const DatasetInfo& info)
{
    const bool isOther = info.columns != m_columns;
    m_columns = info.columns;
    auto roles = info.mapping;
    roles.erase("style"); // how rows are written: not a column
    if (!roles.empty() || isOther) {
        m_kind = kindOf(roles);
        m_roles = std::move(roles);
    }
    build();
    setVisible(!m_columns.empty() && info.format != DataFormat::Text);
}

void ColumnForm::clear()
{
    m_columns.clear();
    m_roles.clear();
    hide();
}

void ColumnForm::choose(const std::map<std::string, std::string>& mapping)
{
    m_kind = kindOf(mapping);
    m_roles = mapping;
    build();
    emit changed();
}

std::optional<std::map<std::string, std::string>> ColumnForm::choices() const
{
    std::map<std::string, std::string> out;
    for (const Row& row : m_rows) {
        const auto found = m_roles.find(row.role);
        if (found != m_roles.end())
            out.insert(*found);
        else if (row.isNeeded)
            return std::nullopt;
    }
    return out;
}

QComboBox* ColumnForm::box(const std::string& role) const
{
    const auto found = std::find_if(
        m_rows.begin(), m_rows.end(), [&](const Row& row) { return row.role == role; });
    return found == m_rows.end() ? nullptr : found->box;
}

QWidget* ColumnForm::lastInFocusOrder() const
{
    return m_rows.empty() ? m_kindBox : m_rows.back().box;
}

std::vector<ColumnForm::Row> ColumnForm::rowsOf(Kind kind) const
{
    std::vector<Row> rows;
    for (const Role& role : kRoles)
        if (role.kind == kind && (role.isCommon || m_roles.contains(role.role)))
            rows.push_back({role.role, role.isNeeded, nullptr, nullptr});
    return rows;
}

// The boxes that are there are kept where they are the same ones: looking at the file again must
// not take the focus away.
void ColumnForm::build()
{
    const QSignalBlocker blocked(m_kindBox);
    m_kindBox->setCurrentIndex(m_kind);
    std::vector<Row> wanted = rowsOf(m_kind);
    const bool isSame = std::equal(wanted.begin(), wanted.end(), m_rows.begin(), m_rows.end(),
        [](const Row& a, const Row& b) { return a.role == b.role; });
    if (!isSame) {
        for (const Row& row : m_rows) {
            row.label->deleteLater(); // the signal of a box may be under way
            row.box->deleteLater();
            row.label->hide();
            row.box->hide();
        }
        m_rows = std::move(wanted);
        QWidget* before = m_kindBox;
        for (std::size_t i = 0; i < m_rows.size(); ++i) {
            Row& row = m_rows[i];
            row.label = new QLabel(this);
            row.box = new QComboBox(this);
            row.label->setBuddy(row.box);
            connect(row.box, &QComboBox::activated, this,
                [this, role = row.role](int index) { take(role, index); });
            m_grid->addWidget(row.label, static_cast<int>(i) + 1, 0);
            m_grid->addWidget(row.box, static_cast<int>(i) + 1, 1);
            setTabOrder(before, row.box);
            before = row.box;
        }
    }
    for (const Row& row : m_rows)
        fill(row);
}

// The first entry stands for no column. A last one is added for a choice that is no column's name.
void ColumnForm::fill(const Row& row)
{
    const QSignalBlocker blocked(row.box);
    const QString text = tr(textOf(m_kind, row.role));
    row.label->setText(text);
    row.box->setAccessibleName(text);
    row.box->clear();
    row.box->addItem(row.isNeeded ? tr("Choose a column…") : tr("(none)"));
    for (const std::string& name : m_columns)
        row.box->addItem(QString::fromStdString(name));
    const auto chosen = m_roles.find(row.role);
    const auto column = chosen == m_roles.end()
                            ? m_columns.end()
                            : std::find(m_columns.begin(), m_columns.end(), chosen->second);
    const bool isWithin = chosen != m_roles.end() && column == m_columns.end();
    if (isWithin)
        row.box->addItem(QString::fromStdString(chosen->second));
    row.box->setCurrentIndex(chosen == m_roles.end() ? 0
                             : isWithin              ? row.box->count() - 1
                                        : static_cast<int>(column - m_columns.begin()) + 1);
}

void ColumnForm::take(const std::string& role, int index)
{
    if (index > static_cast<int>(m_columns.size()))
        return; // the last entry: it is chosen already
    if (index > 0)
        m_roles[role] = m_columns.at(static_cast<std::size_t>(index) - 1);
    else
        m_roles.erase(role);
    emit changed();
}

void ColumnForm::chooseKind(int kind)
{
    if (kind == m_kind)
        return;
    m_kind = static_cast<Kind>(kind);
    m_roles.clear();
    build();
    emit changed();
}

void ColumnForm::changeEvent(QEvent* event)
{
    QWidget::changeEvent(event);
    if (event->type() == QEvent::LanguageChange)
        retranslateUi();
}

void ColumnForm::retranslateUi()
{
    const QSignalBlocker blocked(m_kindBox);
    m_kindLabel->setText(tr("Each row is"));
    m_kindBox->setAccessibleName(tr("Kind of the rows"));
    m_kindBox->clear();
    m_kindBox->addItems({tr("Plain text"), tr("Prompt and response"), tr("Conversation")});
    m_kindBox->setCurrentIndex(m_kind);
    for (const Row& row : m_rows)
        fill(row);
}

} // namespace mr::ui
