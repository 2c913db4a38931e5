/* A bot on libstrophe that does what it reads, as slixmpp_bot.py says. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strophe.h>
#include <unistd.h>

static int begun;

static void tell(xmpp_conn_t *conn, xmpp_conn_event_t event, int error,
                 xmpp_stream_error_t *stream_error, void *number)
{
    (void)conn, (void)error, (void)stream_error;
    if (event == XMPP_CONN_DISCONNECT || event == XMPP_CONN_FAIL) {
        printf("closed %ld\n", (long)number);
        fflush(stdout);
    }
}

static xmpp_conn_t *login(xmpp_ctx_t *ctx, char *line)
{
    char name[100], password[100], resource[100], option[100] = "", jid[400], host[100];
    int port = 0;
    xmpp_conn_t *conn = xmpp_conn_new(ctx);
    sscanf(line, "login %99s %99s %99s %99s", name, password, resource, option);
    sscanf(getenv("XMPP_SERVICE"), "xmpp://%99[^:]:%d", host, &port);
    snprintf(jid, sizeof jid, "%s@%s/%s", name, getenv("XMPP_DOMAIN"), resource);
    xmpp_conn_set_jid(conn, jid);
    xmpp_conn_set_pass(conn, password);
    xmpp_conn_set_cafile(conn, getenv("XMPP_TLS_CA_FILE"));
    if (!strcmp(option, "no-starttls"))
        xmpp_conn_set_flags(conn, XMPP_CONN_FLAG_DISABLE_TLS);
    xmpp_connect_client(conn, host, port, tell, (void *)(long)++begun);
    return conn;
}

int main(void)
{
    static char buffer[1 << 20];
    size_t filled = 0;
    xmpp_conn_t *conn = NULL;
    xmpp_initialize();
    xmpp_ctx_t *ctx = xmpp_ctx_new(NULL, xmpp_get_default_logger(XMPP_LEVEL_DEBUG));
    fcntl(0, F_SETFL, O_NONBLOCK);
    for (;;) {
        ssize_t got = read(0, buffer + filled, sizeof buffer - filled - 1);
        char *end;
        if (got == 0)
            return 0;
        filled += got > 0 ? (size_t)got : 0;
        buffer[filled] = 0;
        while ((end = strchr(buffer, '\n'))) {
            *end = 0;
            if (!strncmp(buffer, "login ", 6))
                conn = login(ctx, buffer);
            else if (!strcmp(buffer, "close"))
                xmpp_disconnect(conn);
            else
                xmpp_send_raw_string(conn, "%s", buffer);
            filled -= (size_t)(end + 1 - buffer);
            memmove(buffer, end + 1, filled + 1);
        }
        xmpp_run_once(ctx, 10);
    }
}
