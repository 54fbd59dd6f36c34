#include "text/policy_words.h"

#include <array>

namespace mr::ui {

namespace {

// The plain names of the policies' table, for lupdate.
[[maybe_unused]] constexpr std::array kPlainNames{
    QT_TRANSLATE_NOOP("mr::ui::PolicyWords", "all on the card"),
    QT_TRANSLATE_NOOP("mr::ui::PolicyWords", "state in RAM"),
    QT_TRANSLATE_NOOP("mr::ui::PolicyWords", "state in RAM, late by one step"),
    QT_TRANSLATE_NOOP("mr::ui::PolicyWords", "state shared"),
    QT_TRANSLATE_NOOP("mr::ui::PolicyWords", "hot columns first"),
    QT_TRANSLATE_NOOP("mr::ui::PolicyWords", "weights in RAM"),
    QT_TRANSLATE_NOOP("mr::ui::PolicyWords", "on the SSD"),
};

} // namespace

QString PolicyWords::shown(const PolicyName& policy)
{
    const QString name = QString::fromStdString(policy.name);
    if (policy.plainName.empty())
        return name;
    QString plain = tr(policy.plainName.c_str());
    plain.replace(0, 1, plain.at(0).toUpper());
    return tr("%1 (%2)", "plain name of a policy, technical name").arg(plain, name);
}

} // namespace mr::ui
