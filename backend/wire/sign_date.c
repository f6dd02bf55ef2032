/* SPDX-License-Identifier: MIT */
/* Written out, since strftime() and strptime() take the locale's names. */
#include "sign.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "../base/clock.h"

static const char days[] = "SunMonTueWedThuFriSat";
static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";

void sign_date(int64_t wall_ns, char out[SIGN_DATE_LEN])
{
	time_t s = (time_t)(wall_ns / NS_PER_S);
	struct tm tm = {0};

	(void)gmtime_r(&s, &tm);
	/* The remainders change nothing; they tell the compiler what fits. */
	snprintf(out, SIGN_DATE_LEN, "%.3s, %02u %.3s %04u %02u:%02u:%02u GMT",
		days + 3 * tm.tm_wday, (unsigned)tm.tm_mday % 100, months + 3 * tm.tm_mon,
		(unsigned)(tm.tm_year + 1900) % 10000, (unsigned)tm.tm_hour % 100,
		(unsigned)tm.tm_min % 100, (unsigned)tm.tm_sec % 100);
}

int64_t sign_date_parse(const char *text)
{
	struct tm tm = {0};
	char day[4], month[4];
	const char *m;
	int end = -1;
	time_t s;

	if (sscanf(text, "%3[A-Za-z], %2d %3[A-Za-z] %4d %2d:%2d:%2d GMT%n", day,
		    &tm.tm_mday, month, &tm.tm_year, &tm.tm_hour, &tm.tm_min, &tm.tm_sec,
		    &end) != 7 ||
		end < 0 || text[end] != '\0')
		return -1;
	m = strlen(month) == 3 ? strstr(months, month) : NULL;
	if (!m || (m - months) % 3 != 0 || tm.tm_mday < 1 || tm.tm_mday > 31 ||
		tm.tm_year < 1970 || tm.tm_hour < 0 || tm.tm_hour > 23 || tm.tm_min < 0 ||
		tm.tm_min > 59 || tm.tm_sec < 0 || tm.tm_sec > 60)
		return -1;
	tm.tm_mon = (int)(m - months) / 3;
	tm.tm_year -= 1900;
	s = timegm(&tm);
	return s > CLOCK_NEVER / NS_PER_S ? -1 : (int64_t)s * NS_PER_S;
}
