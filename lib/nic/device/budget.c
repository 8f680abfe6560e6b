/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See budget.h.
 */
#include "budget.h"

#define X(name, budget, what) [BUDGET_##name] = (budget),
const uint32_t budget_of[BUDGETS] = {BUDGET_JOBS(X)};
#undef X

#define X(name, budget, what) [BUDGET_##name] = #name "_visits",
const char *const budget_visits_names[BUDGETS] = {BUDGET_JOBS(X)};
#undef X

#define X(name, budget, what) [BUDGET_##name] = #name "_over_budget",
const char *const budget_over_names[BUDGETS] = {BUDGET_JOBS(X)};
#undef X
