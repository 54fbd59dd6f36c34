#include "pages/policy_choice.h"

#include "text/policy_words.h"

#include <QAbstractItemView>
#include <QCheckBox>
#include <QComboBox>

#include <algorithm>

namespace mr::ui {

namespace {

constexpr int kListMargin = 24; // frame and scroll bar

} // namespace

PolicyChoice::PolicyChoice(const std::vector<PolicyName>& policies, QWidget* form)
    : QObject(form)
    , m_policies(policies)
    , m_first(new QComboBox(form))
    , m_compare(new QCheckBox(form))
    , m_second(new QComboBox(form))
{
    m_first->setObjectName(QStringLiteral("policy"));
    m_compare->setObjectName(QStringLiteral("compareWith"));
    m_second->setObjectName(QStringLiteral("secondPolicy"));
    for (QComboBox* box : {m_first, m_second}) {
        box->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
        for (const PolicyName& policy : policies)
            box->addItem(QString::fromStdString(policy.name), QString::fromStdString(policy.name));
    }
    m_second->setEnabled(false);
    connect(m_first, &QComboBox::currentTextChanged, m_first, &QWidget::setToolTip); // all of it
    connect(m_compare, &QCheckBox::toggled, this, &PolicyChoice::onCompareToggled);
}

void PolicyChoice::onCompareToggled(bool on)
{
    m_second->setEnabled(on);
    // One policy twice says nothing, and "automatic" may become it: begin with another by name.
    const int chosen = m_second->currentIndex();
    if (on && m_second->count() > 1 && (chosen == 0 || chosen == m_first->currentIndex()))
        m_second->setCurrentIndex(1 + m_first->currentIndex() % (m_second->count() - 1));
    emit compareChanged();
}

std::string PolicyChoice::policy() const
{
    return m_first->currentData().toString().toStdString();
}

std::string PolicyChoice::secondPolicy() const
{
    return m_compare->isChecked() ? m_second->currentData().toString().toStdString()
                                  : std::string();
}

void PolicyChoice::setPolicy(const std::string& policy)
{
    const QString name = QString::fromStdString(policy);
    if (m_first->findData(name) < 0) // from another program: the plan reports it
        m_first->addItem(name, name);
    m_first->setCurrentIndex(m_first->findData(name));
    m_compare->setChecked(false);
}

void PolicyChoice::retranslate()
{
    m_compare->setText(tr("Compare with"));
    m_compare->setToolTip(tr("Trains twice on the same data with the same seed and settings, one "
                             "run after the other, and shows both beside each other."));
    m_second->setAccessibleName(tr("Policy to compare with"));
    m_second->setToolTip(tr("The second run starts when the first is done: at the same time they "
                            "would disturb each other's times."));
    for (QComboBox* box : {m_first, m_second}) {
        box->setItemText(0, tr("Automatic"));
        for (std::size_t i = 1; i < m_policies.size(); ++i)
            box->setItemText(static_cast<int>(i), PolicyWords::shown(m_policies[i]));
        // The longest name may be wider than the box.
        box->view()->setAccessibleName(tr("Policies"));
        box->view()->setMinimumWidth(box->view()->sizeHintForColumn(0) + kListMargin);
    }
}

} // namespace mr::ui
