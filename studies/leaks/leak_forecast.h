/* When a leak fills a device: the recording is replayed on it with its last step repeated again and
 * again, blocks that outlive the step kept. */
#ifndef FRAG_LEAKS_LEAK_FORECAST_H
#define FRAG_LEAKS_LEAK_FORECAST_H

#include "sim/run.h"
#include "studies/leaks/steps.h"

/* What is known of the leaks. */
typedef struct frag_leak_rate {
    double bytes_per_step;
    uint64_t peak_reserved_bytes; /* of the recording, without a limit */
} frag_leak_rate;

typedef struct frag_leak_forecast {
    uint64_t oom_step; /* from 1, in which the device is full; FRAG_UNLIMITED: in none that was
                          looked at */
    bool is_recorded;  /* it is one of the recording's own steps; else it comes behind them */
    bool is_rough;     /* no two runs of steps are alike: by the average, without a replay */
    uint64_t looked_steps;
} frag_leak_forecast;

/* On the device of the setup, which has a capacity. false: as frag_run. */
bool frag_leaks_forecast(const frag_run_setup *setup, const frag_context *context,
                         const frag_steps *steps, const frag_leak_rate *rate,
                         frag_leak_forecast *forecast, frag_error *error);

#endif
