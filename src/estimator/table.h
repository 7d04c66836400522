/* The estimators there are, for the table in estimator.c. Internal to the room. */
#ifndef COLLOC_ESTIMATOR_TABLE_H
#define COLLOC_ESTIMATOR_TABLE_H

#include "estimator/estimator.h"

extern const struct estimator estimator_none;
extern const struct estimator estimator_declared;
extern const struct estimator estimator_horus;

#endif
