/* SPDX-License-Identifier: MIT */
/* Options of runs that end by themselves. */
#include "config_args.h"

/* man: run-idle-time */
TEST(a_bounded_run_polls_often_unless_told_otherwise)
{
	static const char *const others[] = {"poll_floor=1s", "poll_ceiling=60s",
		"poll_factor=2", "poll_decrease=reset", "poll_jitter=0"};
	struct config cfg;
	char list[64];

	check_taken(&cfg, "run_for=60s");
	CHECK_INT(cfg.budget.run_for_ns, 60 * SECOND);
	CHECK_INT(cfg.poll.floor_ns, 5 * SECOND);
	CHECK_INT(cfg.poll.ceiling_ns, 5 * SECOND);
	check_shown(&cfg, "idle_time", "5s");
	config_fini(&cfg);
	check_taken(&cfg, "run_for=60s,idle_time=2s");
	CHECK_INT(cfg.poll.ceiling_ns, 2 * SECOND);
	config_fini(&cfg);
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		snprintf(list, sizeof(list), "%s,run_for=60s", others[i]);
		check_taken(&cfg, list);
		CHECK_INT(cfg.poll.floor_ns, SECOND);
		CHECK_INT(cfg.poll.ceiling_ns, 60 * SECOND);
		check_shown(&cfg, "idle_time", "");
		config_fini(&cfg);
	}
	check_taken(&cfg, "idle_timeout=60s");
	CHECK_INT(cfg.poll.floor_ns, SECOND);
	config_fini(&cfg);
}

TEST(a_run_without_time_for_a_message_is_refused)
{
	const char *short_run = "run_for: too short to hand out a message, as "
				"estimated_duration times tolerance_factor is not less";
	struct config cfg;

	check_refused("run_for=10s", short_run);
	check_refused("run_for=60s,estimated_duration=12s", short_run);
	check_refused("tolerance_factor=30.5,run_for=60s", short_run);
	check_taken(&cfg, "run_for=60s,estimated_duration=12s,tolerance_factor=4.9");
	CHECK_INT(config_set(&cfg, "tolerance_factor=5", err, sizeof(err)), -EINVAL);
	CHECK_STR(err, short_run);
	CHECK_INT(config_set(&cfg, "run_for=58s", err, sizeof(err)), -EINVAL);
	CHECK_INT(cfg.budget.run_for_ns, 60 * SECOND);
	CHECK_INT(config_set(&cfg, "run_for=0", err, sizeof(err)), 0);
	CHECK_INT(config_set(&cfg, "tolerance_factor=5", err, sizeof(err)), 0);
	check_shown(&cfg, "run_for", "");
	config_fini(&cfg);
}

/* What was set while mounted is not overruled by what a run implies. */
TEST(set_run_for_leaves_polls_that_were_set)
{
	struct config cfg;

	check_taken(&cfg, "visibility=30s");
	CHECK_INT(config_set(&cfg, "poll_floor=7s", err, sizeof(err)), 0);
	CHECK_INT(config_set(&cfg, "run_for=60s", err, sizeof(err)), 0);
	CHECK_INT(cfg.poll.floor_ns, 7 * SECOND);
	CHECK_INT(cfg.poll.ceiling_ns, 60 * SECOND);
	config_fini(&cfg);
	check_taken(&cfg, "run_for=60s");
	CHECK_INT(config_set(&cfg, "poll_floor=2s", err, sizeof(err)), 0);
	CHECK_INT(cfg.poll.floor_ns, 2 * SECOND);
	CHECK_INT(config_set(&cfg, "visibility=40s", err, sizeof(err)), 0);
	CHECK_INT(cfg.poll.floor_ns, 2 * SECOND);
	config_fini(&cfg);
}
